"""The task that delivers the journal to the sink: in order, at least once, without blocking appends
(V14, V15, V17)."""

import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

import structlog

from agentbox.adapters.events.cloudevents import BATCH, SINGLE
from agentbox.adapters.events.delivery.batches import (
    MAX_RECORDS,
    EncodedRecord,
    encode_batch,
    pack_batch,
)
from agentbox.adapters.events.delivery.cursor import DeliveryCursor
from agentbox.adapters.events.delivery.pause import InterruptiblePause
from agentbox.adapters.events.delivery.sink import DeliveryOutcome, Sink
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Clock
from agentbox.contracts.events import Event, EventBatch, NewEvent
from agentbox.core.records.wire import JsonObj
from agentbox.core.slot_errors import AdapterError, CursorExpired

NO_SINK_REASON = "no mesh session"  # reason while a slot has no endpoint
REJECTED = "journal.delivery.rejected"
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 1.0, 60.0
_log = structlog.get_logger()


class JournalSource(Protocol):
    """The journal as the worker uses it."""

    async def wait_beyond(self, seq: int) -> None: ...
    async def read(self, *, since: int = -1, limit: int = 100) -> EventBatch: ...
    async def append(self, events: Sequence[NewEvent]) -> tuple[Event, ...]: ...


class RetryLater(Exception):
    """Nothing can be sent now."""

    def __init__(self, outcome: DeliveryOutcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class DeliveryWorker:
    """`run` never returns. `problem` is the reason for waiting, "" if there is none; `blocked` is
    the same while an operator must act."""

    def __init__(
        self,
        journal: JournalSource,
        cursor: DeliveryCursor,
        clock: Clock,
        on_delivered: Callable[[int], None],
        may_send: Callable[[], Awaitable[None]],
    ) -> None:
        """`on_delivered` is called with the last record that the sink has; `may_send` is waited
        for once, by `run`."""
        self._journal, self._cursor, self._clock, self._on_delivered = (
            journal,
            cursor,
            clock,
            on_delivered,
        )
        self._pause = InterruptiblePause(clock)
        self._sink: Sink | None = None
        self._single = False  # the sink accepts no batches
        self._reason = NO_SINK_REASON
        self._failures = 0
        self._failing_since: float | None = None
        self.blocked = self.problem = ""
        self.epoch = 0  # of the journal; set before `run`
        self._may_send = may_send

    def set_sink(self, sink: Sink | None, reason: str = NO_SINK_REASON) -> None:
        """Deliver to this sink from now on; None means no sink, with the reason."""
        self._sink, self._single, self._reason = sink, False, reason
        self._clear_problem()
        self._pause.interrupt()

    async def run(self) -> None:
        """Deliver until cancelled. Errors are retried after a delay."""
        with context.as_caller(context.CORE):
            await self._may_send()
            while True:
                await self._run_once()

    async def _run_once(self) -> None:
        """Wait for records and deliver some, or back off."""
        outcome = DeliveryOutcome(
            "again", 0, "delivery failed with an internal error; see the traceback in the log"
        )
        try:
            await self._journal.wait_beyond(self._cursor.seq)
            await self._deliver(await self._next_records())
            return
        except RetryLater as later:
            outcome = later.outcome
        except CursorExpired as error:
            await self._skip_to(int(error.members["oldest"]) - 1)
            return
        except (AdapterError, OSError) as error:
            outcome = DeliveryOutcome("again", 0, f"cannot read the records to deliver: {error}")
        except Exception:  # noqa: BLE001 - a bug must not end the delivery of everything that follows
            _log.exception("journal.delivery.bug")
        await self._back_off(outcome)

    async def _next_records(self) -> tuple[EncodedRecord, ...]:
        batch = await self._journal.read(since=self._cursor.seq, limit=MAX_RECORDS)
        return pack_batch(batch.events, self.epoch)

    async def _deliver(self, records: Sequence[EncodedRecord]) -> None:
        """Move the cursor past the records. Raises RetryLater."""
        if self._single and len(records) > 1:
            for record in records:
                await self._deliver((record,))
            return
        outcome = await self._post(records)
        if outcome.kind == "taken":
            await self._advance(records[-1].event)
        elif outcome.kind == "unsupported" and not self._single:
            self._single = True
            await self._deliver(records)
        elif outcome.kind == "refused" and len(records) == 1:
            await self._dead_letter(records[0].event, outcome)
        elif outcome.kind == "refused":
            half = len(records) // 2
            await self._deliver(records[:half])
            await self._deliver(records[half:])
        else:
            raise RetryLater(outcome)

    async def _post(self, records: Sequence[EncodedRecord]) -> DeliveryOutcome:
        sink = self._sink
        if sink is None:
            return DeliveryOutcome("held", 0, self._reason)
        body, form = (records[0].text, SINGLE) if self._single else (encode_batch(records), BATCH)
        outcome = await sink.post(body, form, self._clock.now())
        return (
            outcome
            if sink is self._sink
            else DeliveryOutcome("again", 0, "the sink was changed", 0.0)
        )

    async def _advance(self, event: Event) -> None:
        await self._cursor.advance(event.seq, event.hash)
        self._on_progress()

    async def _dead_letter(self, event: Event, outcome: DeliveryOutcome) -> None:
        """Append the event first, with a fixed id, so that a crash between the two steps appends it
        only once. A rejected event of this type creates no further one; otherwise a sink that
        rejects everything would fill the journal."""
        if event.type != REJECTED:
            data: JsonObj = {
                "seq": event.seq,
                "id": event.id,
                "type": event.type,
                "status": outcome.status,
                "reason": outcome.reason,
            }
            await self._journal.append(
                [NewEvent(type=REJECTED, data=data, id=f"rejected-{event.seq}-{event.hash[:16]}")]
            )
        await self._cursor.dead_letter(event, outcome.status, outcome.reason, self._clock.now())
        self._on_progress()

    def _on_progress(self) -> None:
        self._clear_problem()
        self._on_delivered(self._cursor.seq)

    def _clear_problem(self) -> None:
        self._failures, self._failing_since = 0, None
        self.blocked = self.problem = ""

    async def _skip_to(self, seq: int) -> None:
        """The journal was pruned past the cursor; those records can no longer be delivered."""
        _log.warning("journal.delivery.pruned", first=self._cursor.seq + 1, last=seq)
        await self._cursor.advance(seq, "")

    async def _back_off(self, outcome: DeliveryOutcome) -> None:
        """Wait 1 s, doubled up to 60 s, half of it random, or the Retry-After of the sink. A new
        sink ends the wait."""
        ceiling = min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(self._failures, 30))
        self._failures += 1
        self._failing_since = (
            self._clock.monotonic() if self._failing_since is None else self._failing_since
        )
        self.problem = outcome.reason
        self.blocked = outcome.reason if outcome.kind in ("held", "unsupported") else ""
        seconds = (
            random.uniform(ceiling / 2, ceiling)
            if outcome.retry_after is None
            else outcome.retry_after
        )
        await self._pause.sleep(seconds)

    def age(self, oldest: datetime | None) -> float:
        """Return the age of the oldest record in seconds, robust against clock steps."""
        if oldest is None:
            return 0.0
        now = self._clock.monotonic()
        return max(
            0.0, (self._clock.now() - oldest).total_seconds(), now - (self._failing_since or now)
        )
