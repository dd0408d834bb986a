"""The five slots as resolved: implementation, whether required, and the options that this
implementation reads. The tables of the manifest are imported only to make a plan, and for a key
that a plan lacks: a box starts without them.
"""

from collections.abc import Mapping
from typing import Any

from agentbox.plan.model import SlotPlan


def resolve_slots(adapters: Mapping[str, Mapping[str, Any]]) -> dict[str, SlotPlan]:
    """`adapters` is the effective table `[adapters]`, sizes in bytes. A slot that is off is never
    required.
    """
    from agentbox.manifest.tables.slots import SLOTS

    return {name: _slot(name, adapters[name]) for name in SLOTS}


def _slot(name: str, table: Mapping[str, Any]) -> SlotPlan:
    from agentbox.manifest.tables.slots import options_of

    use = str(table["use"])
    options = {key: table[key] for key in sorted(options_of(name, use))}
    return SlotPlan(use=use, required=bool(table["required"]) and use != "off", options=options)


def slot_option(slot: str, options: Mapping[str, Any], name: str) -> Any:
    """The value of a key of `[adapters.<slot>]`, a size in bytes. The options of a plan have every
    key of the chosen implementation; another key has the manifest's default.
    """
    value = options.get(name)
    if value is None:
        from agentbox.manifest.tables.slots import default_option

        return default_option(slot, name)
    return value
