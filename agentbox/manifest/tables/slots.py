"""[adapters.<slot>]: the implementation of each of the five slots, and its options
(`manifest/slot_options.py`). The table of a slot is the union of its options classes, and a key is
used while `use` names an implementation whose class has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeVar, dataclass_transform, get_args

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.key import key, table
from agentbox.manifest.declarations.options import Options, declared_keys
from agentbox.manifest.slot_options import (
    IMPLEMENTATIONS,
    BridgeOptions,
    CallTimeout,
    EndpointOptions,
    HttpEventsOptions,
    HttpOptions,
    JournalOptions,
    LeaseOptions,
    LocalPodsOptions,
    MemoryOptions,
    PostgresBeadsOptions,
    PostgresMemoryOptions,
    ProcessOptions,
    SolidPodsOptions,
)

_USE = "The implementation that serves the slot."
_REQUIRED = (
    "Down = /ready answers 503; else the slot is served by `off` and retried. "
    '`use = "off"` implies false.'
)
_T = TypeVar("_T")

SlotClass = Literal["local", "external", "off"]
"""Of an implementation, as in the prefix of its name."""

_CLASSES: Final = {str(name): name for name in get_args(SlotClass)}


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(key,))
def slot_table(kind: type[_T]) -> type[_T]:
    """A frozen dataclass with the keys of all bases, those of the last base first."""
    hints = {name: hint for base in reversed(kind.__mro__) for name, hint in declared_keys(base)}
    for name in hints:
        setattr(kind, name, getattr(kind, name))
    kind.__annotations__ = hints
    return dataclass(frozen=True, kw_only=True)(kind)


class SlotTable:
    """A slot. `options`: the options class of each implementation; `off` has none."""

    options: ClassVar[Mapping[str, type[Options]]] = {}

    use: str = key("off", "boot", doc=_USE)
    required: bool = key(False, "boot", doc=_REQUIRED)


class SlotTargetTable(CallTimeout, EndpointOptions, SlotTable):
    """The keys in all five tables. Rules explain where a target does not apply."""


@slot_table
class BeadsTable(PostgresBeadsOptions, LeaseOptions, HttpOptions, SlotTargetTable):
    """Work: tasks, receipts, dependencies, claims."""

    options: ClassVar = IMPLEMENTATIONS["beads"]

    use: Literal["local-sqlite", "external-http", "external-pg", "off"] = key(
        "local-sqlite", "boot", doc=_USE
    )


@slot_table
class PodsTable(LocalPodsOptions, SolidPodsOptions, SlotTargetTable):
    """Files with an address."""

    options: ClassVar = IMPLEMENTATIONS["pods"]

    use: Literal["local-fs", "external-solid", "off"] = key("local-fs", "boot", doc=_USE)


@slot_table
class MemoryTable(PostgresMemoryOptions, MemoryOptions, SlotTargetTable):
    """What agents remember."""

    options: ClassVar = IMPLEMENTATIONS["memory"]

    use: Literal["local-sqlite", "external-pg", "off"] = key("local-sqlite", "boot", doc=_USE)


@slot_table
class EventsTable(HttpEventsOptions, JournalOptions, SlotTargetTable):
    """The journal."""

    options: ClassVar = IMPLEMENTATIONS["events"]

    use: Literal["local-jsonl", "external-http", "off"] = key("local-jsonl", "boot", doc=_USE)


@slot_table
class OrchestratorTable(BridgeOptions, ProcessOptions, SlotTargetTable):
    """What starts agents."""

    options: ClassVar = IMPLEMENTATIONS["orchestrator"]

    use: Literal["local-process", "external-stdio", "off"] = key("local-process", "boot", doc=_USE)
    required: bool = key(True, "boot", doc=_REQUIRED)


@frozen
class AdaptersTable:
    """Which implementation serves each of the five slots. Local ones keep their data in
    /var/lib/agentbox/<slot>/.
    """

    beads: BeadsTable = table(BeadsTable)
    pods: PodsTable = table(PodsTable)
    memory: MemoryTable = table(MemoryTable)
    events: EventsTable = table(EventsTable)
    orchestrator: OrchestratorTable = table(OrchestratorTable)


SLOTS = tuple(IMPLEMENTATIONS)


def slot_class(use: str) -> SlotClass:
    """The class of the implementation `use`, as in `external-http`. Raises KeyError for an unknown
    class.
    """
    result: SlotClass = _CLASSES[use.partition("-")[0]]
    return result
