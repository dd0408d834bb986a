"""The journal in files of the box."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Future

from agentbox.adapters.events.journal.batch import AppendJob
from agentbox.adapters.events.journal.cut import JournalCut
from agentbox.adapters.events.journal.drafts import create_draft
from agentbox.adapters.events.journal.foreign_records import draft_from_delivery
from agentbox.adapters.events.journal.open_journal import DISK_FULL, OpenJournal
from agentbox.adapters.events.journal.prune import sealed_before
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, SlotConfig
from agentbox.adapters.runtime.agent_quotas import is_agent
from agentbox.adapters.runtime.input_checks import check_range, check_text
from agentbox.adapters.runtime.journal_pruning import SealedSegment
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
from agentbox.core.background.threads import run_in_thread
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import AdapterError, SlotUnavailable
from agentbox.manifest.slot_options import JournalOptions

READ_AHEAD = 256  # records that a subscriber reads at once


class LocalJsonlEvents(Adapter):
    """Segments of JSON lines in the slot's directory. With `fsync = "interval"` the capability
    `durable` is missing."""

    cfg: SlotConfig[JournalOptions]
    slot = "events"
    impl = "local-jsonl"
    contract_version = CONTRACT_VERSION
    exclusive = True

    def __init__(self, cfg: SlotConfig[JournalOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        is_durable = cfg.options.fsync != "interval"
        self.capabilities = frozenset({"durable"}) if is_durable else frozenset()
        self._open_journal: OpenJournal | None = None
        self._change_event: asyncio.Event | None = None

    async def open(self, deadline: Deadline) -> None:
        """Check the newest records; the rest is checked in the background. Raises IntegrityError,
        or SlotUnavailable (another writer)."""
        loop = asyncio.get_running_loop()
        self._change_event = asyncio.Event()
        opening = asyncio.ensure_future(
            run_in_thread(
                lambda: OpenJournal(
                    self.cfg, self.deps, lambda: _call_in_loop(loop, self._notify_readers)
                )
            )
        )
        try:
            self._open_journal = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_late)
            raise
        if (torn := self._open_journal.journal.torn) is not None:
            name, size, digest = torn
            event = NewEvent(
                type="journal.recovered", data={"segment": name, "bytes": size, "sha256": digest}
            )
            await self.append([event])

    async def close(self) -> None:
        journal, self._open_journal = self._open_journal, None
        self._notify_readers()
        if journal is not None:
            await run_in_thread(journal.close)

    def cut(self, *, dump: bool) -> JournalCut:
        return JournalCut(self._require_open(), self.cfg.directory, self.cfg.use)

    @property
    def agent_refusal(self) -> AdapterError | None:
        """The error that agents get although the box can still append; None if agents can append or
        the journal is not open."""
        return None if self._open_journal is None else self._open_journal.writer.agent_refusal

    async def health(self) -> Health:
        """`degraded` if appends fail: existing records are readable."""
        journal = self._open_journal
        if journal is None:
            return self.health_is("down", "the journal is not open")
        try:
            fault = await asyncio.get_running_loop().run_in_executor(
                journal.pool, journal.find_fault
            )
        except (AdapterError, OSError, ValueError, RuntimeError) as error:
            fault = f"cannot read the journal back: {type(error).__name__}"
        if fault == DISK_FULL:
            return self.health_is("degraded", fault)
        if not fault and journal.writer.is_full:
            return self.health_is(
                "degraded", "appends fail: the journal has reached adapters.events.max_size"
            )
        return self.health_is("down" if fault else "ok", fault)

    async def append(self, events: Sequence[NewEvent]) -> tuple[Event, ...]:
        journal = self._require_open()
        if not events:
            return ()
        if len(events) > LIMIT[1]:
            raise invalid_value("/events", f"has {len(events)} items, the maximum is {LIMIT[1]}")
        caller = context.current()
        drafts = [
            create_draft(e, caller, self.cfg.box, self.deps.ids(), f"/events/{n}")
            for n, e in enumerate(events)
        ]
        future: Future[tuple[Event, ...]] = Future()
        journal.writer.put(AppendJob(drafts, future, of_agent=is_agent(caller.principal)))
        return await asyncio.wrap_future(future)

    async def read(
        self, *, since: int = -1, limit: int = 100, filter: EventFilter = ALL
    ) -> EventBatch:
        journal = self._require_open()
        check_range(limit, "/limit", LIMIT)
        check_range(since, "/since", (-1, 2**53))
        return await asyncio.get_running_loop().run_in_executor(
            journal.pool, journal.reader.batch, since, limit, filter
        )

    def subscribe(
        self, *, since: int | None = None, filter: EventFilter = ALL
    ) -> AsyncGenerator[Event]:
        """Read from disk by cursor, so a slow reader blocks nobody and misses nothing."""
        if since is None:
            since = -1 if self._open_journal is None else self._open_journal.journal.head[0]
        return self._follow(since, filter)

    async def head(self) -> tuple[int, str]:
        return self._require_open().journal.head

    async def verify(self, *, from_seq: int = 0) -> VerifyReport:
        journal = self._require_open()
        return await asyncio.get_running_loop().run_in_executor(
            journal.pool, journal.verify, from_seq
        )

    async def receive(self, box: str, records: Sequence[Event]) -> Received:
        journal = self._require_open()
        if not box or len(records) > LIMIT[1]:
            raise invalid_value("/records", f"must be at most {LIMIT[1]} records of a named box")
        drafts = [
            draft_from_delivery(record, check_text(box, "/box"), f"/{n}")
            for n, record in enumerate(records)
        ]
        future: Future[tuple[Event, ...]] = Future()
        journal.writer.put(AppendJob(drafts, future, box=box))
        stored = await asyncio.wrap_future(future)
        watermark, _ = journal.journal.origin_heads.get(box, (-1, ""))
        if not stored:
            return Received(stored=0, watermark=watermark)
        count = sum(event.origin is not None for event in stored)
        return Received(
            stored=count, watermark=watermark, first_seq=stored[0].seq, last_seq=stored[-1].seq
        )

    async def delivery(self, *, limit: int = 100) -> Delivery:
        """Return an empty status: there is no sink."""
        self._require_open()
        return Delivery()

    async def wait_beyond(self, seq: int) -> None:
        """Wait for a record after this one."""
        while self._require_open().journal.head[0] <= seq:
            assert self._change_event is not None, "set while the journal is open"
            await self._change_event.wait()

    def seq_before_first(self) -> int:
        """Return the seq before that of the oldest kept record."""
        return self._require_open().journal.first_seq - 1

    def discard_through(self, seq: int) -> None:
        """Queue the removal of sealed segments up to this record."""
        if self._open_journal is not None:
            self._open_journal.writer.discard_through(seq)

    async def sealed_before(self, day: str) -> Sequence[SealedSegment]:
        """The oldest segments, of days before this one."""
        journal = self._require_open().journal
        return await run_in_thread(lambda: sealed_before(journal, day))

    async def remove_through(self, seq: int) -> int:
        """Remove sealed segments up to this record; return the first that is kept."""
        journal = self._require_open()
        await asyncio.wrap_future(journal.writer.discard(seq))
        return journal.journal.first_seq

    async def _follow(self, since: int, filter: EventFilter) -> AsyncGenerator[Event]:
        while True:
            change_event = self._change_event
            batch = await self.read(since=since, limit=READ_AHEAD, filter=filter)
            for event in batch.events:
                yield event
            since = batch.next_since
            if since >= batch.head_seq and change_event is not None:
                await change_event.wait()

    def _notify_readers(self) -> None:
        """Wake all subscribers."""
        if self._change_event is not None:
            change_event, self._change_event = self._change_event, asyncio.Event()
            change_event.set()

    def _require_open(self) -> OpenJournal:
        if self._open_journal is None:
            raise SlotUnavailable(
                "cannot use events: the journal is not open",
                slot="events",
                impl=self.cfg.use,
                since=None,
            )
        if self._open_journal.damage is not None:
            raise self._open_journal.damage
        return self._open_journal


def _call_in_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    """Called in the writer's thread, which may outlive the loop of an ending program."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(work)


def _close_late(opening: "asyncio.Future[OpenJournal]") -> None:
    """Close a journal whose opening was cancelled but succeeded."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
