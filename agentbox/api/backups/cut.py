"""One moment of the whole box: writes pause while read transactions begin, the journal's last."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

import apsw
import structlog

from agentbox import __version__
from agentbox.adapters.runtime.adapter import SLOTS, SlotName
from agentbox.adapters.runtime.cut import JournalPart, SlotCut
from agentbox.adapters.runtime.slots import Slots
from agentbox.adapters.runtime.write_gate import WritesUnderWay
from agentbox.api.backups.parts import store_paths
from agentbox.contracts.events import NewEvent
from agentbox.core import clock
from agentbox.core.adapter_error import AdapterError
from agentbox.core.backup_errors import BackupBusy
from agentbox.core.paths import Paths
from agentbox.core.storage.sqlite_errors import to_adapter_error
from agentbox.core.storage.sqlite_snapshot import StoreSnapshot
from agentbox.plan.model import Plan

T = TypeVar("T")
WAIT_SECONDS: Final = 0.15  # for writes under way, each time
TRIES: Final = 3
LONGEST_SECONDS: Final = 2.0  # that all stores together may take to begin
PAUSE_SECONDS: Final = 0.1  # between two tries: what waited goes on meanwhile
EVENT: Final = "backup.cut"
_SLOTS: Final[tuple[SlotName, ...]] = tuple(slot for slot in SLOTS if slot != "orchestrator")
_log = structlog.get_logger()


@dataclass(kw_only=True)
class OpenCut:
    """What was cut, until it is closed. `stores` are those besides the slots, by their paths below
    the state folder; `partial`: slots that were down. `paused` is for how many seconds writes
    waited.
    """

    id: str
    tag: str
    plan: Plan
    slots: dict[SlotName, SlotCut] = field(default_factory=dict)
    stores: dict[str, StoreSnapshot] = field(default_factory=dict)
    partial: tuple[str, ...] = ()
    time: datetime = field(default_factory=clock.now)
    seq: int = 0
    epoch: int = 0
    paused: float = 0.0

    def size(self) -> int:
        """About how many bytes the stores have. Blocks."""
        return sum(part.size() for part in self.slots.values()) + sum(
            store.size for store in self.stores.values()
        )

    def close(self) -> None:
        """Ends all transactions. Blocks."""
        with ExitStack() as stack:
            for part in self.slots.values():
                stack.callback(part.close)
            for store in self.stores.values():
                stack.callback(store.close)


class Cutter:
    """Makes cuts of a box. `wait` is in seconds, for writes under way, of each try; `longest`, for
    all stores together: writes wait no longer than both.
    """

    def __init__(
        self,
        paths: Paths,
        slots: Slots,
        wait: float = WAIT_SECONDS,
        longest: float = LONGEST_SECONDS,
    ) -> None:
        self._paths, self._slots, self._wait, self._longest = paths, slots, wait, longest

    async def prepare(self, id: str, tag: str, plan: Plan) -> OpenCut:
        """Opens every store, while writes go on. Raises AdapterError."""
        cut = OpenCut(id=id, tag=tag, plan=plan)
        wanted = [slot for slot in _SLOTS if slot in plan.backup.include]
        cut.partial = tuple(slot for slot in wanted if self._is_missing(slot))
        dump = plan.backup.external == "dump"
        for slot in wanted:
            if slot not in cut.partial:
                part = self._slots.serving(slot).cut(dump=dump)
                if part is not None:
                    cut.slots[slot] = part
        try:
            await in_thread(lambda: self._open_stores(cut))
        except BaseException:
            await in_thread(cut.close)
            raise
        return cut

    async def take(self, cut: OpenCut) -> None:
        """The moment itself. Raises BackupBusy, and the error of a slot. A call that is cancelled
        lets writes go on at once, and ends when the stores have begun.
        """
        for left in reversed(range(TRIES)):
            started = time.monotonic()
            try:
                async with AsyncExitStack() as after, self._slots.gate.closed(self._wait):
                    deadline = time.monotonic() + self._longest
                    begun = asyncio.create_task(self._begin(cut, deadline))
                    after.push_async_callback(_settle, begun)
                    async with asyncio.timeout(self._longest):
                        await asyncio.shield(begun)
                    cut.paused = time.monotonic() - started
                return
            except TimeoutError:
                raise self._too_long() from None
            except WritesUnderWay as busy:
                _log.info("writes are under way", count=busy.count, tries_left=left)
                if not left:
                    raise BackupBusy(
                        f"cannot make a backup: {busy.count} calls that write did not end within "
                        f"{self._wait * 1000:.0f} ms, {TRIES} times",
                        hint="Try again when the box does less.",
                    ) from None
            await asyncio.sleep(PAUSE_SECONDS)

    def _is_missing(self, slot: SlotName) -> bool:
        return self._slots.status()[slot].state in ("down", "connecting")

    def _open_stores(self, cut: OpenCut) -> None:
        for name, path in store_paths(self._paths, cut.plan.backup.include):
            try:
                cut.stores[name] = StoreSnapshot(path)
            except apsw.Error as error:
                raise to_adapter_error(error, path.name, "", "") from error
        for part in cut.slots.values():
            part.prepare()

    async def _begin(self, cut: OpenCut, deadline: float) -> None:
        """The journal is last: an outbox that is behind it sends what a sink drops, while the other
        order would lose events.
        """
        journal = cut.slots.get("events")
        before = [part for slot, part in cut.slots.items() if slot != "events"]
        try:
            await in_thread(lambda: _begin_all(list(cut.stores.values()), before, deadline))
        except AdapterError as error:
            if time.monotonic() < deadline:
                raise
            raise self._too_long() from error
        if time.monotonic() >= deadline:
            raise self._too_long()
        cut.time = clock.now()
        if "events" in cut.plan.backup.include and "events" not in cut.partial:
            await self._note(cut, journal, deadline)

    def _too_long(self) -> BackupBusy:
        return BackupBusy(
            f"cannot make a backup: the stores did not begin within {self._longest:g} s",
            hint="Look which slot is slow: `agentbox status`.",
        )

    async def _note(self, cut: OpenCut, journal: SlotCut | None, deadline: float) -> None:
        if self._slots.journal.is_off:
            return
        data = {"id": cut.id, "tag": cut.tag, "release": __version__}
        (event,) = await self._slots.events.append([NewEvent(type=EVENT, data=data)])
        cut.seq = event.seq
        if isinstance(journal, JournalPart):
            cut.epoch = journal.epoch
            journal.last_seq = event.seq
            await in_thread(lambda: journal.begin(_left(deadline)))


def _begin_all(stores: Sequence[StoreSnapshot], parts: Sequence[SlotCut], deadline: float) -> None:
    for store in stores:
        try:
            store.begin(_left(deadline))
        except apsw.Error as error:
            raise to_adapter_error(error, "a store", "", "") from error
    for part in parts:
        part.begin(_left(deadline))


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.0)


async def in_thread(work: Callable[[], T]) -> T:
    """A thread cannot be cancelled: a call that is cancelled ends when the thread does."""
    running = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    finally:
        await _settle(running)


async def _settle(task: "asyncio.Task[Any]") -> None:
    """Waits for the end of a task, also where the wait is cancelled, which raises later."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if not task.cancelled():
        task.exception()  # it was, or will be, raised where it is awaited
    if cancelled is not None:
        raise cancelled
