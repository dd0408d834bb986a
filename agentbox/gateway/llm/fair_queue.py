"""Queue of a provider: deficit round robin by weight (Shreedhar and Varghese, 1995), FIFO within an
agent.

A flow is an agent started by an operator with all its descendants, so more children do not get a
larger share. The agents of a flow take turns, so a busy child delays neither its parent nor its
siblings. The cost of a call is its reservation, in tokens.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from agentbox.gateway.llm.concurrency import ConcurrencyLimit, ConcurrencyTicket
from agentbox.gateway.llm.vendor_protocol import ModelGatewayError

QUANTUM: Final = 4096  # tokens per round for a flow of weight 1
MAX_WAITING: Final = 32  # waiting calls of one agent at a provider
MAX_COST: Final = (
    1 << 20
)  # cap of a call's cost in tokens: a round adds one quantum, and rounds are run one by one


@dataclass(slots=True, eq=False)
class _Waiter:
    ticket: ConcurrencyTicket
    cost: int
    turn: "asyncio.Future[None]"
    since: float


@dataclass(slots=True, eq=False)
class _Flow:
    key: str
    weight: int
    deficit: int = 0
    waiting: dict[str, deque[_Waiter]] = field(default_factory=dict)  # by agent, next turn first

    def heads(self) -> Iterator[_Waiter]:
        """The oldest call of each agent, in the order of their turns."""
        return (calls[0] for calls in self.waiting.values())

    def add(self, waiter: _Waiter) -> None:
        """Appends to the calls of its agent."""
        self.waiting.setdefault(waiter.ticket.agent, deque()).append(waiter)

    def remove(self, waiter: _Waiter) -> bool:
        """Removes a call and moves its agent to the end. False if it was not waiting."""
        calls = self.waiting.get(waiter.ticket.agent)
        if calls is None or waiter not in calls:
            return False
        calls.remove(waiter)
        del self.waiting[waiter.ticket.agent]
        if calls:
            self.waiting[waiter.ticket.agent] = calls
        return True


class FairQueue:
    """Allows `slots` concurrent calls, within the agents' concurrency limits. Used by one event
    loop."""

    def __init__(self, slots: int, concurrency: ConcurrencyLimit) -> None:
        self.slots = slots
        self.running = 0
        self._concurrency = concurrency
        concurrency.on_release.append(self.dispatch)
        self._flows: dict[str, _Flow] = {}
        self._round: deque[_Flow] = deque()  # waiting flows, next turn first

    @property
    def depth(self) -> int:
        """The number of waiting calls."""
        return sum(len(calls) for flow in self._round for calls in flow.waiting.values())

    async def acquire(self, ticket: ConcurrencyTicket, cost: int) -> float:
        """Waits for the turn and returns the seconds waited; `release` must follow. Raises
        ModelGatewayError if the queue is full."""
        loop = asyncio.get_running_loop()
        flow = self._flows.setdefault(ticket.flow, _Flow(ticket.flow, ticket.weight))
        flow.weight = ticket.weight
        if len(flow.waiting.get(ticket.agent, ())) >= MAX_WAITING:
            raise ModelGatewayError(
                "budget",
                f"{MAX_WAITING} calls of this agent are already waiting",
                rule="budget:concurrent",
                retry_after=1.0,
            )
        waiter = _Waiter(ticket, min(cost, MAX_COST), loop.create_future(), loop.time())
        if not flow.waiting:
            self._round.append(flow)
        flow.add(waiter)
        self.dispatch()
        try:
            await waiter.turn
        except asyncio.CancelledError:
            if flow.remove(waiter):
                self._drop_if_empty(flow)
                self.dispatch()
            else:  # dispatched while being cancelled
                self.release(ticket)
            raise
        return loop.time() - waiter.since

    def release(self, ticket: ConcurrencyTicket) -> None:
        """Ends a call: frees its slot and its concurrency ticket, here and at the other
        providers."""
        self.running -= 1
        self._concurrency.release(ticket)

    def dispatch(self) -> None:
        """Assigns free slots to waiting calls."""
        blocked = 0  # consecutive flows whose agents are all at their concurrency limits
        while self._round and self.running < self.slots and blocked < len(self._round):
            flow = self._round[0]
            waiter = next(
                (
                    candidate
                    for candidate in flow.heads()
                    if self._concurrency.has_capacity(candidate.ticket)
                ),
                None,
            )
            if waiter is None:
                self._round.rotate(-1)
                blocked += 1
                continue
            blocked = 0
            if waiter.cost > flow.deficit:
                flow.deficit += QUANTUM * flow.weight
                self._round.rotate(-1)
                continue
            self._concurrency.acquire(waiter.ticket)
            flow.deficit -= waiter.cost
            flow.remove(waiter)
            self._drop_if_empty(flow)
            self.running += 1
            waiter.turn.set_result(None)

    def _drop_if_empty(self, flow: _Flow) -> None:
        """An idle flow loses its deficit."""
        if not flow.waiting:
            flow.deficit = 0
            self._round.remove(flow)
            self._flows.pop(flow.key, None)
