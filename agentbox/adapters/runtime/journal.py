"""How core code writes to the journal: an event, or a count of what was lost; never a failure of the caller's own work."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from agentbox.adapters.runtime.adapter import Adapter
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.contracts.events import Event, Events, NewEvent
from agentbox.core.records.wire import JsonObj
from agentbox.core.slot_errors import AdapterError

MAX_PENDING = 256  # events kept while the slot is being opened for the first time


class _SlotState(Protocol):
    @property
    def state(self) -> str: ...
    @property
    def serving(self) -> Adapter: ...


@runtime_checkable
class _AgentQuota(Protocol):
    """A journal of which agents may fill a part."""

    @property
    def agent_refusal(self) -> AdapterError | None: ...


class Journal:
    """Skips a slot that is configured off, and counts `agentbox_journal_lost_total{reason}` when it is down.

    What is recorded while the slot is opened for the first time is kept and appended in order once it is open.
    """

    def __init__(self, slot: _SlotState, metrics: Metrics) -> None:
        self._slot = slot
        self._metrics = metrics
        self._events: Events | None = None
        self._pending: list[NewEvent] = []
        self._buffering = True
        self._tasks: set[asyncio.Task[None]] = set()

    def bind(self, events: Events) -> None:
        """Gives it the slot to write to; the container does, once."""
        self._events = events

    @property
    def is_off(self) -> bool:
        """True when the manifest turned the slot off."""
        return self._slot.state == "off"

    @property
    def agent_refusal(self) -> AdapterError | None:
        """Why agents can add nothing to the journal, though the box can; None while they can."""
        serving = self._slot.serving
        return serving.agent_refusal if isinstance(serving, _AgentQuota) else None

    def check_agent_writes(self) -> None:
        """Raises what keeps the journal from having a line about a call of an agent: without it none is made."""
        if (error := self.agent_refusal) is not None:
            raise error

    def count_lost(self, error: AdapterError, count: int = 1) -> None:
        """So many events are in no journal, for that reason."""
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
        """The event as stored; None when the slot is off, still opening, or down (then counted as lost)."""
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
        """As `record`, but what cannot be appended raises the slot's error."""
        return await self._append(NewEvent(type=type, data=data, agent_id=agent_id))

    def record_soon(self, type: str, data: JsonObj) -> None:
        """`record` for callers that cannot wait; `drain` waits for them."""
        task = asyncio.get_running_loop().create_task(_discard_result(self.record(type, data)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def write_shielded(self, write: Callable[[], Awaitable[object]]) -> None:
        """Waits for a record; a cancelled caller does not stop it."""
        task = asyncio.get_running_loop().create_task(_discard_result(write()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)

    async def flush_pending(self) -> None:
        """The first opening is over, one way or the other: what waited is appended, or counted as lost."""
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
        assert self._events is not None, "the container binds it"
        return (await self._events.append([event]))[0]

    async def drain(self) -> None:
        """Waits for every record under way. A caller that waits no longer than some time is let go when it is over."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))


async def _discard_result(work: Awaitable[object]) -> None:
    await work
