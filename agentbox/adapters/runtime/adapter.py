"""The base class of adapters, their configuration and their dependencies."""

import abc
import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeVar, get_args

from agentbox.core import clock as wall
from agentbox.core.deadline import Deadline
from agentbox.core.frozen import frozen_slots
from agentbox.core.ids import uuid7
from agentbox.core.paths import Paths
from agentbox.core.records.page import Page as Page
from agentbox.core.records.plain import to_plain
from agentbox.core.records.wire import Record, record
from agentbox.core.storage.store_record import StoreRecord
from agentbox.manifest.declarations.options import Options
from agentbox.plan.slots import slot_options

if TYPE_CHECKING:
    from agentbox.adapters.runtime.cut import SlotCut
    from agentbox.adapters.runtime.metrics import Metrics
    from agentbox.plan.model import Plan

SlotName = Literal["beads", "pods", "memory", "events", "orchestrator"]
SLOTS: tuple[SlotName, ...] = get_args(SlotName)
O_co = TypeVar("O_co", bound=Options, covariant=True)


@record
class Health(Record):
    """The result of a real round trip. A `degraded` slot still serves calls."""

    state: Literal["ok", "degraded", "down"]
    detail: str
    checked_at: datetime


class Clock(Protocol):
    """The time source of adapters; tests replace it."""

    def now(self) -> datetime: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return wall.now()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@frozen_slots
class SlotConfig(Generic[O_co]):
    """The resolved configuration of a slot. `options` are those of its implementation; `secrets`
    are values that were already read."""

    slot: SlotName
    use: str
    required: bool
    paths: Paths
    options: O_co
    box: str = "box"  # meta.name
    box_at_host: str = ""  # principal of this box at the host of its mesh session, "" without one
    limits: Mapping[str, Any] = field(default_factory=dict)  # defaults for all agents
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def directory(self) -> Path:
        """The directory of the slot's local state."""
        return self.paths.slot(self.slot)

    @property
    def record(self) -> StoreRecord:
        """The record of the last state of the slot's local store."""
        return StoreRecord(self.paths.slot("stores") / f"{self.slot}.json")


def slot_config(
    plan: "Plan", paths: Paths, slot: SlotName, secrets: Mapping[str, str] | None = None
) -> SlotConfig[Options]:
    """Return the configuration of a slot from the plan."""
    slot_plan = plan.slots[slot]
    return SlotConfig(
        slot=slot,
        use=slot_plan.use,
        required=slot_plan.required,
        paths=paths,
        box=plan.name,
        options=slot_options(plan.slots, slot),
        limits=to_plain(plan.limits),
        secrets=secrets or {},
    )


async def _at_once() -> None:
    """Nothing holds the box."""


async def _no_delay(_slot: SlotName) -> None:
    """Do nothing; the default of `Deps.before_open`."""


@frozen_slots
class Deps:
    """The dependencies of an adapter. A test image uses `before_open` to delay or fail a slot: it
    is awaited within the open timeout, and an exception fails the open."""

    metrics: "Metrics"
    clock: Clock = field(default_factory=SystemClock)
    ids: Callable[[], str] = uuid7
    before_open: Callable[[SlotName], Awaitable[None]] = _no_delay
    may_send: Callable[[], Awaitable[None]] = _at_once  # returns when the box is not held


class Adapter(abc.ABC):
    """An implementation of a slot. `capabilities` is fixed after `open`. A class with options
    annotates `cfg` with their class.

    `open` ends within its deadline or raises. `close` is idempotent, never raises, takes at most 5
    s and leaves no thread, task, descriptor or child process. `health` makes a real round trip
    within 2 s and never raises.
    """

    cfg: SlotConfig[Options]
    slot: ClassVar[SlotName]
    impl: ClassVar[str]
    contract_version: ClassVar[str] = "1.0.0"
    capabilities: frozenset[str] = frozenset()
    exclusive: bool = False  # one open instance per store; fixed after `open`
    min_retry_seconds: ClassVar[float] = 0.0  # seconds before the next instance is tried

    def __init__(self, cfg: SlotConfig[Options], deps: Deps) -> None:
        self.cfg = cfg
        self.deps = deps

    @abc.abstractmethod
    async def open(self, deadline: Deadline) -> None: ...

    @abc.abstractmethod
    async def close(self) -> None: ...

    @abc.abstractmethod
    async def health(self) -> Health: ...

    async def adopt(self, cfg: SlotConfig[Any]) -> bool:
        """Apply another configuration of the same class while serving. Return False if the adapter
        must be reopened for it."""
        return False

    def cut(self, *, dump: bool) -> "SlotCut | None":
        """Return what a backup takes of the slot; None if others have its data. `dump`: data on a
        server too."""
        return None

    def health_is(self, state: Literal["ok", "degraded", "down"], detail: str) -> Health:
        """Return a Health with the current time."""
        return Health(state=state, detail=detail, checked_at=self.deps.clock.now())
