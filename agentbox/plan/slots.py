"""The five slots as resolved: implementation, whether required, and the options that this
implementation reads. The plan has them as plain data; readers get them as a record.
"""

from collections.abc import Mapping
from typing import Any

from agentbox.manifest.declarations.options import Options
from agentbox.manifest.slot_options import IMPLEMENTATIONS, options_class
from agentbox.plan.model import SlotPlan


def resolve_slots(adapters: Mapping[str, Mapping[str, Any]]) -> dict[str, SlotPlan]:
    """`adapters` is the effective table `[adapters]`, sizes in bytes. A slot that is off is never
    required.
    """
    return {name: _slot(name, adapters[name]) for name in IMPLEMENTATIONS}


def _slot(name: str, table: Mapping[str, Any]) -> SlotPlan:
    use = str(table["use"])
    options = {key: table[key] for key in sorted(options_class(name, use).names())}
    return SlotPlan(use=use, required=bool(table["required"]) and use != "off", options=options)


def slot_options(slots: Mapping[str, SlotPlan], name: str) -> Options:
    """The options of a slot, as a record of the class of its implementation. Raises TypeError for
    one that this does not read.
    """
    return options_class(name, slots[name].use)(**slots[name].options)
