"""The journal in files of the box."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Future

from agentbox.adapters.events.journal.batch import Job
from agentbox.adapters.events.journal.drafts import draft_of
from agentbox.adapters.events.journal.live import DISK_FULL, Live
from agentbox.adapters.events.journal.received import draft_of_delivered
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, SlotConfig
from agentbox.adapters.runtime.checks import check_range, check_text
from agentbox.adapters.runtime.shares import is_agent
from agentbox.contracts.events import (
    ALL,
    CONTRACT_VERSION,
    LIMIT,
    Delivery,
    Event,
    EventBatch,
    EventFilter,
    NewEvent,
    Received,
    VerifyReport,
)
from agentbox.core.background.threads import in_thread
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import AdapterError, SlotUnavailable

PULL = 256  # records that a subscriber reads at once


class LocalJsonlEvents(Adapter):
    """Segments of JSON lines below the slot's folder. With `fsync = "interval"` it lacks the capability `durable`."""

    slot = "events"
    impl = "local-jsonl"
    contract_version = CONTRACT_VERSION
    exclusive = True

    def __init__(self, cfg: SlotConfig, deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._sync = cfg.option("fsync", "group")
        self.capabilities = frozenset() if self._sync == "interval" else frozenset({"durable"})
        self._live: Live | None = None
        self._changed: asyncio.Event | None = None

    async def open(self, deadline: Deadline) -> None:
        """Checks the newest part, the rest in the background. Raises IntegrityError, SlotUnavailable (another writer)."""
        loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        opening = asyncio.ensure_future(
            in_thread(lambda: Live(self.cfg, self.deps, lambda: _call(loop, self._wake), self._sync))
        )
        try:
            self._live = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_shut_late)
            raise
        if (torn := self._live.journal.torn) is not None:
            name, size, digest = torn
            found = NewEvent(type="journal.recovered", data={"segment": name, "bytes": size, "sha256": digest})
            await self.append([found])

    async def close(self) -> None:
        live, self._live = self._live, None
        self._wake()
        if live is not None:
            await in_thread(live.shut)

    @property
    def refuses_agents(self) -> AdapterError | None:
        """Why nothing that agents do can be written down any more; None while it can, and while the journal is not open."""
        return None if self._live is None else self._live.writer.refuses_agents

    async def health(self) -> Health:
        """`degraded` where it takes no more: what there is can be read."""
        live = self._live
        if live is None:
            return self.health_is("down", "the journal is not open")
        try:
            complaint = await asyncio.get_running_loop().run_in_executor(live.pool, live.complaint)
        except (AdapterError, OSError, ValueError, RuntimeError) as error:
            complaint = f"cannot read the journal back: {type(error).__name__}"
        if complaint == DISK_FULL:
            return self.health_is("degraded", complaint)
        if not complaint and live.writer.full:
            return self.health_is("degraded", "appends fail: the journal has reached adapters.events.max_size")
        return self.health_is("down" if complaint else "ok", complaint)

    async def append(self, events: Sequence[NewEvent]) -> tuple[Event, ...]:
        live = self._require()
        if not events:
            return ()
        if len(events) > LIMIT[1]:
            raise refuse("/events", f"has {len(events)} items, at most {LIMIT[1]} are allowed")
        here = context.current()
        drafts = [draft_of(e, here, self.cfg.box, self.deps.ids(), f"/events/{n}") for n, e in enumerate(events)]
        future: Future[tuple[Event, ...]] = Future()
        live.writer.put(Job(drafts, future, of_agent=is_agent(here.principal)))
        return await asyncio.wrap_future(future)

    async def read(self, *, since: int = -1, limit: int = 100, flt: EventFilter = ALL) -> EventBatch:
        live = self._require()
        check_range(limit, "/limit", LIMIT)
        check_range(since, "/since", (-1, 2**53))
        return await asyncio.get_running_loop().run_in_executor(live.pool, live.reader.batch, since, limit, flt)

    def subscribe(self, *, since: int | None = None, flt: EventFilter = ALL) -> AsyncGenerator[Event]:
        """Pulls from disk by cursor, so a slow reader holds up nobody and misses nothing."""
        if since is None:
            since = -1 if self._live is None else self._live.journal.head[0]
        return self._follow(since, flt)

    async def head(self) -> tuple[int, str]:
        return self._require().journal.head

    async def verify(self, *, from_seq: int = 0) -> VerifyReport:
        live = self._require()
        return await asyncio.get_running_loop().run_in_executor(live.pool, live.verify, from_seq)

    async def receive(self, box: str, records: Sequence[Event]) -> Received:
        live = self._require()
        if not box or len(records) > LIMIT[1]:
            raise refuse("/records", f"must be at most {LIMIT[1]} records of a box with a name")
        drafts = [draft_of_delivered(record, check_text(box, "/box"), f"/{n}") for n, record in enumerate(records)]
        future: Future[tuple[Event, ...]] = Future()
        live.writer.put(Job(drafts, future, box=box))
        stored = await asyncio.wrap_future(future)
        watermark, _ = live.journal.marks.get(box, (-1, ""))
        if not stored:
            return Received(stored=0, watermark=watermark)
        count = sum(event.origin is not None for event in stored)
        return Received(stored=count, watermark=watermark, first_seq=stored[0].seq, last_seq=stored[-1].seq)

    async def delivery(self, *, limit: int = 100) -> Delivery:
        """To nobody."""
        self._require()
        return Delivery()

    async def beyond(self, seq: int) -> None:
        """Returns once there is a record after that one."""
        while self._require().journal.head[0] <= seq:
            assert self._changed is not None, "it is there while the journal is open"
            await self._changed.wait()

    def before_first(self) -> int:
        """The number before that of the oldest record kept."""
        return self._require().journal.first_seq - 1

    def forget(self, seq: int) -> None:
        """Removes, soon, the sealed segments whose records all stand at or before that one."""
        if self._live is not None:
            self._live.writer.forget(seq)

    async def _follow(self, at: int, flt: EventFilter) -> AsyncGenerator[Event]:
        while True:
            changed = self._changed
            batch = await self.read(since=at, limit=PULL, flt=flt)
            for event in batch.events:
                yield event
            at = batch.next_since
            if at >= batch.head_seq and changed is not None:
                await changed.wait()

    def _wake(self) -> None:
        """Tells every subscriber to look again."""
        if self._changed is not None:
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    def _require(self) -> Live:
        if self._live is None:
            raise SlotUnavailable(
                "cannot use events: the journal is not open", slot="events", impl=self.cfg.use, since=None
            )
        if self._live.damage is not None:
            raise self._live.damage
        return self._live


def _call(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    """Runs in the writer's thread, which may outlive the loop when a program ends without closing."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(work)


def _shut_late(opening: "asyncio.Future[Live]") -> None:
    """Opening was given up, and came true after all."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().shut()
