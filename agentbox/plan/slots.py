"""The five slots as resolved: implementation, whether required, and the options that this
implementation reads.
"""

from collections.abc import Mapping
from typing import Any

from agentbox.manifest.model import hints_of
from agentbox.manifest.tables.slots import SLOTS, AdaptersTable, option_names
from agentbox.plan.model import SlotPlan


def resolve_slots(adapters: Mapping[str, Mapping[str, Any]]) -> dict[str, SlotPlan]:
    """`adapters` is the effective table `[adapters]`, sizes in bytes. A slot that is off is never
    required.
    """
    return {name: _slot(name, adapters[name]) for name in SLOTS}


def _slot(name: str, table: Mapping[str, Any]) -> SlotPlan:
    use = str(table["use"])
    options_class = hints_of(AdaptersTable)[name].options.get(use)
    names = option_names(options_class) if options_class else ()
    options = {name: table[name] for name in sorted(set(names))}
    return SlotPlan(use=use, required=bool(table["required"]) and use != "off", options=options)
