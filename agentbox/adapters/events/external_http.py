"""The journal in files of the box, delivered to a sink: the journal is the outbox, and the sink holds nobody up (V14)."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from agentbox.adapters.events.delivery.courier import NOBODY, Courier
from agentbox.adapters.events.delivery.ledger import Ledger
from agentbox.adapters.events.delivery.sink import Sink
from agentbox.adapters.events.local_jsonl import LocalJsonlEvents
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, SlotConfig
from agentbox.adapters.runtime.checks import check_range
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
from agentbox.core.deadline import Deadline
from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.sqlite import closed

LATE_SECONDS = 60.0  # a record that waits longer degrades the slot
LETTERS = (0, 1000)
_TARGET = frozenset({"endpoint", "token_env", "token_file", "timeout_seconds", "ca_file"})


class ExternalHttpEvents(Adapter):
    """`endpoint` is the sink; "" = nobody yet, until `adopt` brings one. With `tee_local = false` sealed segments go once
    they are delivered."""

    slot = "events"
    impl = "external-http"
    contract_version = CONTRACT_VERSION
    exclusive = True

    def __init__(self, cfg: SlotConfig, deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._journal = LocalJsonlEvents(cfg, deps)
        self.capabilities = self._journal.capabilities
        self._ledger = Ledger(cfg.directory, self.impl)
        self._courier = Courier(self._journal, self._ledger, deps.clock, self._settled)
        self._running: asyncio.Task[None] | None = None
        self._sink: Sink | None = None

    async def open(self, deadline: Deadline) -> None:
        """As the journal in files; the sink is not waited for, and an address that may not be used is a matter of health."""
        await self._journal.open(deadline)
        await self._ledger.open()
        await self._check_cursor()
        await self._aim(self.cfg)
        self._running = asyncio.get_running_loop().create_task(self._courier.run(), name="events-courier")

    async def close(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        if self._sink is not None:
            await self._sink.close()
        await self._ledger.close()
        await self._journal.close()

    async def adopt(self, cfg: SlotConfig) -> bool:
        """Another sink, or another token for it, while appends go on; anything else opens the slot anew."""
        same = {name: value for name, value in cfg.options.items() if name not in _TARGET}
        if (
            same != {name: value for name, value in self.cfg.options.items() if name not in _TARGET}
            or not self._running
        ):
            return False
        self.cfg = cfg
        await self._aim(cfg)
        return True

    @property
    def refuses_agents(self) -> AdapterError | None:
        """As the journal in files says it."""
        return self._journal.refuses_agents

    async def health(self) -> Health:
        """Of the journal; degraded while a record waits too long or the sink wants something done. Never down for its sake."""
        found = await self._journal.health()
        if found.state != "ok":
            return found
        try:
            told = await self.delivery(limit=0)
        except AdapterError as error:
            return self.health_is("degraded", error.message)
        if not self._ledger.still_there():
            return self.health_is(
                "degraded", "delivery.db is gone: events are kept, and delivered after the next start"
            )
        said = _sentence(told)
        return self.health_is("degraded" if told.held or told.oldest_s > LATE_SECONDS else "ok", said)

    async def append(self, events: Sequence[NewEvent]) -> tuple[Event, ...]:
        return await self._journal.append(events)

    async def read(self, *, since: int = -1, limit: int = 100, flt: EventFilter = ALL) -> EventBatch:
        return await self._journal.read(since=since, limit=limit, flt=flt)

    def subscribe(self, *, since: int | None = None, flt: EventFilter = ALL) -> AsyncIterator[Event]:
        return self._journal.subscribe(since=since, flt=flt)

    async def head(self) -> tuple[int, str]:
        return await self._journal.head()

    async def verify(self, *, from_seq: int = 0) -> VerifyReport:
        return await self._journal.verify(from_seq=from_seq)

    async def receive(self, box: str, records: Sequence[Event]) -> Received:
        return await self._journal.receive(box, records)

    async def delivery(self, *, limit: int = 100) -> Delivery:
        """Measures, too: the gauges say the same from then on."""
        if self._running is None:
            raise closed(self.slot, self.impl)
        check_range(limit, "/limit", LETTERS)
        batch = await self._journal.read(since=max(self._ledger.seq, self._journal.before_first()), limit=1)
        oldest = batch.events[0].ts if batch.events else None
        letters = await self._ledger.letters(limit) if limit else ()
        found = Delivery(
            sink=True, cursor=self._ledger.seq, undelivered=max(0, batch.head_seq - self._ledger.seq),
            oldest_s=round(self._courier.age(oldest), 3), held=self._courier.held, trouble=self._courier.trouble,
            dead=self._ledger.dead, letters=letters,
        )  # fmt: skip
        self._measure(found)
        return found

    async def _check_cursor(self) -> None:
        """A cursor of another journal (the folder was replaced, or an older copy restored) starts anew at the oldest record."""
        seq, first = self._ledger.seq, self._journal.before_first() + 1
        if seq < first:
            return
        found = (await self._journal.read(since=seq - 1, limit=1)).events
        if not found or found[0].hash != self._ledger.hash:
            await self._ledger.move(first - 1, "")

    async def _aim(self, cfg: SlotConfig) -> None:
        before, self._sink, reason = self._sink, None, NOBODY
        try:
            self._sink = Sink(cfg) if cfg.option("endpoint", "") else None
        except (AdapterError, OSError) as error:
            reason = str(error)
        self._courier.aim(self._sink, reason)
        if before is not None:
            await before.close()

    def _settled(self, seq: int) -> None:
        if not self.cfg.option("tee_local", True):
            self._journal.forget(seq)

    def _measure(self, told: Delivery) -> None:
        metrics = self.deps.metrics
        metrics.undelivered.set(told.undelivered)
        metrics.oldest_undelivered.set(told.oldest_s)
        metrics.dead_letters.set(told.dead)


def _sentence(told: Delivery) -> str:
    """What `/health` says of the delivery; "" when there is nothing to say."""
    said = [told.trouble] if told.trouble else []
    if told.undelivered and told.trouble:
        said.append(f"{told.undelivered} records wait, the oldest for {told.oldest_s:.0f} s")
    if told.dead:
        said.append(f"{told.dead} dead letters")
    return "; ".join(said)
