"""The journal as core code uses it. A failed append is counted and never fails the caller."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from agentbox.adapters.runtime.adapter import Adapter
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.contracts.events import Event, Events, NewEvent
from agentbox.core.records.wire import JsonObj
from agentbox.core.slot_errors import AdapterError

MAX_PENDING = 256  # events buffered during the first open


class _SlotState(Protocol):
    @property
    def state(self) -> str: ...
    @property
    def serving(self) -> Adapter: ...


@runtime_checkable
class _AgentQuota(Protocol):
    """A journal with a share for agents."""

    @property
    def agent_refusal(self) -> AdapterError | None: ...


class BestEffortJournal:
    """Skips a slot that is off, and counts `agentbox_journal_lost_total{reason}` if the slot is
    down.

    Events recorded during the first open are buffered and appended in order afterwards.
    """

    def __init__(self, slot: _SlotState, metrics: Metrics) -> None:
        self._slot = slot
        self._metrics = metrics
        self._events: Events | None = None
        self._pending: list[NewEvent] = []
        self._buffering = True
        self._tasks: set[asyncio.Task[None]] = set()

    def bind(self, events: Events) -> None:
        """Set the slot to write to. `Slots` calls it once."""
        self._events = events

    @property
    def is_off(self) -> bool:
        """Whether the manifest turned the slot off."""
        return self._slot.state == "off"

    @property
    def agent_refusal(self) -> AdapterError | None:
        """The error that agents get although the box can still write; None if agents can write."""
        serving = self._slot.serving
        return serving.agent_refusal if isinstance(serving, _AgentQuota) else None

    def check_agent_writes(self) -> None:
        """Raises the error that prevents journal entries for agent calls: an agent call that cannot
        be journalled is refused."""
        if (error := self.agent_refusal) is not None:
            raise error

    def count_lost(self, error: AdapterError, count: int = 1) -> None:
        """Count lost events by the error that caused the loss."""
        self._metrics.journal_lost.labels(error.code).inc(count)

    async def record(
        self,
        type: str,
        data: JsonObj,
        *,
        source: str | None = None,
        subject: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        id: str | None = None,
    ) -> Event | None:
        """Append an event. Return it, or None if the slot is off, opening, or down (counted as
        lost)."""
        event = NewEvent(
            type=type,
            data=data,
            source=source,
            subject=subject,
            agent_id=agent_id,
            session_id=session_id,
            id=id,
        )
        if self.is_off:
            return None
        if self._buffering and len(self._pending) < MAX_PENDING:
            self._pending.append(event)
            return None
        return await self._append_or_count(event)

    async def record_required(
        self, type: str, data: JsonObj, *, agent_id: str | None = None
    ) -> Event:
        """Append an event like `record`, but raise the slot's error."""
        return await self._append(NewEvent(type=type, data=data, agent_id=agent_id))

    def record_soon(self, type: str, data: JsonObj) -> None:
        """Run `record` in the background; `drain` waits for it."""
        task = asyncio.get_running_loop().create_task(_discard_result(self.record(type, data)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def write_shielded(self, write: Callable[[], Awaitable[object]]) -> None:
        """Wait for a record. Cancelling the caller does not cancel the write."""
        task = asyncio.get_running_loop().create_task(_discard_result(write()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)

    async def flush_pending(self) -> None:
        """Append the buffered events after the first open, or count them as lost."""
        self._buffering = False
        pending, self._pending = self._pending, []
        for event in pending:
            if not self.is_off:
                await self._append_or_count(event)

    async def _append_or_count(self, event: NewEvent) -> Event | None:
        try:
            return await self._append(event)
        except AdapterError as error:
            self.count_lost(error)
            return None

    async def _append(self, event: NewEvent) -> Event:
        assert self._events is not None, "bound by Slots"
        return (await self._events.append([event]))[0]

    async def drain(self) -> None:
        """Wait for all records in progress. A cancelled caller stops waiting only."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))


async def _discard_result(work: Awaitable[object]) -> None:
    await work
