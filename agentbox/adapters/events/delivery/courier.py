"""The task that brings the journal to the sink: in order, at least once, and in nobody's way (V14, V15, V17)."""

import random
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import structlog

from agentbox.adapters.events.cloudevents import BATCH, SINGLE
from agentbox.adapters.events.delivery.ledger import Ledger
from agentbox.adapters.events.delivery.parcels import MOST, Parcel, batch_of, packed
from agentbox.adapters.events.delivery.sink import Sink, Verdict
from agentbox.adapters.events.delivery.waiting import Waiting
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Clock
from agentbox.contracts.events import Event, EventBatch, NewEvent
from agentbox.core.records.wire import JsonObj
from agentbox.core.slot_errors import AdapterError, CursorExpired

NOBODY = "no mesh session"  # what a slot without an endpoint waits for
REJECTED = "journal.delivery.rejected"
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0
_log = structlog.get_logger()


class Outbox(Protocol):
    """The journal, as the courier needs it."""

    async def beyond(self, seq: int) -> None: ...
    async def read(self, *, since: int = -1, limit: int = 100) -> EventBatch: ...
    async def append(self, events: Sequence[NewEvent]) -> tuple[Event, ...]: ...


class Later(Exception):
    """Nothing can be sent now."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


class Courier:
    """`run` never returns. `trouble` says why it waits, "" when it does not; `held` the same where a person has to act."""

    def __init__(self, journal: Outbox, ledger: Ledger, clock: Clock, settled: Callable[[int], None]) -> None:
        """`settled` is told of each record up to which the sink has everything."""
        self._journal, self._ledger, self._clock, self._settled = journal, ledger, clock, settled
        self._waiting = Waiting(clock)
        self._sink: Sink | None = None
        self._single = False  # the sink takes no batches
        self._reason = NOBODY
        self._failures = 0
        self._troubled_at: float | None = None
        self.held = self.trouble = ""

    def aim(self, sink: Sink | None, reason: str = NOBODY) -> None:
        """From now on to that sink; None = to nobody yet, for that reason."""
        self._sink, self._single, self._reason = sink, False, reason
        self._untroubled()
        self._waiting.end()

    async def run(self) -> None:
        """Until cancelled. What goes wrong is waited for and tried again."""
        with context.calling(context.CORE):
            while True:
                await self._round()

    async def _round(self) -> None:
        """Waits for records and sends some; or waits for better times."""
        verdict = Verdict("again", 0, "delivery failed inside; the log has the traceback")
        try:
            await self._journal.beyond(self._ledger.seq)
            await self._deliver(await self._upcoming())
            return
        except Later as later:
            verdict = later.verdict
        except CursorExpired as error:
            await self._skip_to(int(error.members["oldest"]) - 1)
            return
        except (AdapterError, OSError) as error:
            verdict = Verdict("again", 0, f"cannot read what is to be delivered: {error}")
        except Exception:  # noqa: BLE001 - a bug must not end the delivery of everything that follows
            _log.exception("journal.delivery.bug")
        await self._wait(verdict)

    async def _upcoming(self) -> tuple[Parcel, ...]:
        batch = await self._journal.read(since=self._ledger.seq, limit=MOST)
        return packed(batch.events)

    async def _deliver(self, parcels: Sequence[Parcel]) -> None:
        """On return the cursor is behind the last of them. Raises Later."""
        if self._single and len(parcels) > 1:
            for parcel in parcels:
                await self._deliver((parcel,))
            return
        verdict = await self._sent(parcels)
        if verdict.meaning == "taken":
            await self._move(parcels[-1].event)
        elif verdict.meaning == "unsupported" and not self._single:
            self._single = True
            await self._deliver(parcels)
        elif verdict.meaning == "refused" and len(parcels) == 1:
            await self._bury(parcels[0].event, verdict)
        elif verdict.meaning == "refused":
            half = len(parcels) // 2
            await self._deliver(parcels[:half])
            await self._deliver(parcels[half:])
        else:
            raise Later(verdict)

    async def _sent(self, parcels: Sequence[Parcel]) -> Verdict:
        sink = self._sink
        if sink is None:
            return Verdict("held", 0, self._reason)
        body, form = (parcels[0].text, SINGLE) if self._single else (batch_of(parcels), BATCH)
        verdict = await sink.post(body, form, self._clock.now())
        return verdict if sink is self._sink else Verdict("again", 0, "the sink was changed", 0.0)

    async def _move(self, event: Event) -> None:
        await self._ledger.move(event.seq, event.hash)
        self._progress()

    async def _bury(self, event: Event, verdict: Verdict) -> None:
        """The event first, by a name of its own: after a crash between the two it is appended once all the same. The refusal
        of such an event makes no other one, or a sink that refuses everything would fill the journal."""
        if event.type != REJECTED:
            data: JsonObj = {
                "seq": event.seq,
                "id": event.id,
                "type": event.type,
                "status": verdict.status,
                "reason": verdict.reason,
            }
            await self._journal.append(
                [NewEvent(type=REJECTED, data=data, id=f"rejected-{event.seq}-{event.hash[:16]}")]
            )
        await self._ledger.bury(event, verdict.status, verdict.reason, self._clock.now())
        self._progress()

    def _progress(self) -> None:
        self._untroubled()
        self._settled(self._ledger.seq)

    def _untroubled(self) -> None:
        self._failures, self._troubled_at = 0, None
        self.held = self.trouble = ""

    async def _skip_to(self, seq: int) -> None:
        """The journal was pruned beyond the cursor: those records can reach nobody any more."""
        _log.warning("journal.delivery.pruned", first=self._ledger.seq + 1, last=seq)
        await self._ledger.move(seq, "")

    async def _wait(self, verdict: Verdict) -> None:
        """1 s, doubled up to 60 s, half of it at random; a Retry-After of the sink instead. A new sink ends it."""
        longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(self._failures, 30))
        self._failures += 1
        self._troubled_at = self._clock.monotonic() if self._troubled_at is None else self._troubled_at
        self.trouble = verdict.reason
        self.held = verdict.reason if verdict.meaning in ("held", "unsupported") else ""
        seconds = random.uniform(longest / 2, longest) if verdict.wait is None else verdict.wait
        await self._waiting.sleep(seconds)

    def age(self, oldest: datetime | None) -> float:
        """Seconds that the oldest record has been waiting, whatever the wall clock did meanwhile."""
        if oldest is None:
            return 0.0
        now = self._clock.monotonic()
        return max(0.0, (self._clock.now() - oldest).total_seconds(), now - (self._troubled_at or now))
