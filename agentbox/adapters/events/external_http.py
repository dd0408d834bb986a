"""The journal in files of the box, delivered to a sink. The journal is the outbox; the sink never
blocks appends (V14)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from agentbox.adapters.events.delivery.cursor import DeliveryCursor
from agentbox.adapters.events.delivery.sink import Sink
from agentbox.adapters.events.delivery.worker import NO_SINK_REASON, DeliveryWorker
from agentbox.adapters.events.journal.cut import JournalCut
from agentbox.adapters.events.journal.epoch import read_epoch
from agentbox.adapters.events.local_jsonl import LocalJsonlEvents
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, SlotConfig
from agentbox.adapters.runtime.input_checks import check_range
from agentbox.adapters.runtime.journal_pruning import SealedSegment
from agentbox.contracts.events import (
    ALL,
    CONTRACT_VERSION,
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
from agentbox.core.slot_errors import AdapterError, CursorExpired
from agentbox.core.storage.sqlite import closed_error
from agentbox.manifest.slot_options import HttpEventsOptions, HttpOptions

DEGRADED_AFTER_SECONDS = 60.0  # age of an undelivered record at which the slot is degraded
DEAD_LETTER_LIMIT = (0, 1000)


class ExternalHttpEvents(Adapter):
    """`endpoint` is the sink; "" means none until `adopt` sets one. With `tee_local = false` sealed
    segments are removed after delivery."""

    cfg: SlotConfig[HttpEventsOptions]
    slot = "events"
    impl = "external-http"
    contract_version = CONTRACT_VERSION
    exclusive = True

    def __init__(self, cfg: SlotConfig[HttpEventsOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._journal = LocalJsonlEvents(cfg, deps)
        self.capabilities = self._journal.capabilities
        self._cursor = DeliveryCursor(cfg.directory, self.impl)
        self._worker = DeliveryWorker(
            self._journal, self._cursor, deps.clock, self._on_delivered, deps.may_send
        )
        self._worker_task: asyncio.Task[None] | None = None
        self._sink: Sink | None = None

    async def open(self, deadline: Deadline) -> None:
        """Open the journal. Does not wait for the sink; an address that is not allowed is reported
        by `health`."""
        await self._journal.open(deadline)
        await self._cursor.open()
        await self._check_cursor()
        self._worker.epoch = await run_in_thread(lambda: read_epoch(self.cfg.directory))
        await self._set_sink(self.cfg)
        self._worker_task = asyncio.get_running_loop().create_task(
            self._worker.run(), name="events-courier"
        )

    async def close(self) -> None:
        task, self._worker_task = self._worker_task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self._sink is not None:
            await self._sink.close()
        await self._cursor.close()
        await self._journal.close()

    def cut(self, *, dump: bool) -> JournalCut:
        return self._journal.cut(dump=dump)

    async def adopt(self, cfg: SlotConfig[HttpEventsOptions]) -> bool:
        """Apply a change of the sink or its credentials while serving; other changes reopen the
        slot."""
        sink = {name: getattr(cfg.options, name) for name in HttpOptions.names()}
        if self.cfg.options.changed(**sink) != cfg.options or not self._worker_task:
            return False
        self.cfg = cfg
        await self._set_sink(cfg)
        return True

    @property
    def agent_refusal(self) -> AdapterError | None:
        """The `agent_refusal` of the journal."""
        return self._journal.agent_refusal

    async def health(self) -> Health:
        """Return the journal's health, degraded while a record waits too long or the sink needs an
        operator. The sink never makes it down."""
        journal_health = await self._journal.health()
        if journal_health.state != "ok":
            return journal_health
        try:
            status = await self.delivery(limit=0)
        except AdapterError as error:
            return self.health_is("degraded", error.message)
        if not self._cursor.is_present():
            return self.health_is(
                "degraded",
                "delivery.db was removed: events are kept and delivered after the next start",
            )
        detail = _describe(status)
        return self.health_is(
            "degraded" if status.held or status.oldest_s > DEGRADED_AFTER_SECONDS else "ok", detail
        )

    async def append(self, events: Sequence[NewEvent]) -> tuple[Event, ...]:
        return await self._journal.append(events)

    async def read(
        self, *, since: int = -1, limit: int = 100, filter: EventFilter = ALL
    ) -> EventBatch:
        return await self._journal.read(since=since, limit=limit, filter=filter)

    def subscribe(
        self, *, since: int | None = None, filter: EventFilter = ALL
    ) -> AsyncIterator[Event]:
        return self._journal.subscribe(since=since, filter=filter)

    async def head(self) -> tuple[int, str]:
        return await self._journal.head()

    async def verify(self, *, from_seq: int = 0) -> VerifyReport:
        return await self._journal.verify(from_seq=from_seq)

    async def receive(self, box: str, records: Sequence[Event]) -> Received:
        return await self._journal.receive(box, records)

    async def delivery(self, *, limit: int = 100) -> Delivery:
        """Return the delivery status and update the gauges."""
        if self._worker_task is None:
            raise closed_error(self.slot, self.impl)
        check_range(limit, "/limit", DEAD_LETTER_LIMIT)
        batch = await self._read_undelivered()
        oldest = batch.events[0].ts if batch.events else None
        letters = await self._cursor.list_dead_letters(limit) if limit else ()
        status = Delivery(
            sink=True,
            cursor=self._cursor.seq,
            undelivered=max(0, batch.head_seq - self._cursor.seq),
            oldest_s=round(self._worker.age(oldest), 3),
            held=self._worker.blocked,
            trouble=self._worker.problem,
            dead=self._cursor.dead_count,
            letters=letters,
        )
        self._set_metrics(status)
        return status

    async def _read_undelivered(self) -> EventBatch:
        """The oldest record that the sink does not have. What is delivered meanwhile may be removed
        from the journal."""
        while True:
            since = max(self._cursor.seq, self._journal.seq_before_first())
            with contextlib.suppress(CursorExpired):
                return await self._journal.read(since=since, limit=1)

    async def _check_cursor(self) -> None:
        """Restart at the oldest record if the cursor belongs to another journal (replaced or
        restored directory)."""
        seq, first = self._cursor.seq, self._journal.seq_before_first() + 1
        if seq < first:
            return
        events = (await self._journal.read(since=seq - 1, limit=1)).events
        if not events or events[0].hash != self._cursor.hash:
            await self._cursor.advance(first - 1, "")

    async def _set_sink(self, cfg: SlotConfig[HttpEventsOptions]) -> None:
        previous, self._sink, reason = self._sink, None, NO_SINK_REASON
        try:
            self._sink = Sink(cfg) if cfg.options.endpoint else None
        except (AdapterError, OSError) as error:
            reason = str(error)
        self._worker.set_sink(self._sink, reason)
        if previous is not None:
            await previous.close()

    async def sealed_before(self, day: str) -> Sequence[SealedSegment]:
        """The oldest segments, of days before this one, that were delivered."""
        segments = await self._journal.sealed_before(day)
        return [segment for segment in segments if segment.last_seq <= self._cursor.seq]

    async def remove_through(self, seq: int) -> int:
        """Remove sealed segments up to this record; return the first that is kept."""
        return await self._journal.remove_through(seq)

    def _on_delivered(self, seq: int) -> None:
        if not self.cfg.options.tee_local:
            self._journal.discard_through(seq)

    def _set_metrics(self, status: Delivery) -> None:
        metrics = self.deps.metrics
        metrics.undelivered.set(status.undelivered)
        metrics.oldest_undelivered.set(status.oldest_s)
        metrics.dead_letters.set(status.dead)


def _describe(status: Delivery) -> str:
    """Describe the delivery for `/health`; "" if there is nothing to report."""
    sentences = [status.trouble] if status.trouble else []
    if status.undelivered and status.trouble:
        sentences.append(
            f"{status.undelivered} records waiting, the oldest for {status.oldest_s:.0f} s"
        )
    if status.dead:
        sentences.append(f"{status.dead} dead letters")
    return "; ".join(sentences)
