"""Who is next at a provider: deficit round robin by weight (Shreedhar and Varghese, 1995), first come first served within one.

A flow is an agent that an operator started, with all that descend from it: more children do not buy a larger share. Within a
flow its agents take turns, so that a child that asks for much holds up neither its parent nor its siblings. The cost of a call
is what it reserves, in tokens.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from agentbox.gateway.llm.concurrency import ConcurrencyLimit, ConcurrencyTicket
from agentbox.gateway.llm.types import ModelGatewayError

QUANTUM: Final = 4096  # tokens that a flow of weight 1 may use a round
MAX_WAITING: Final = 32  # calls of one agent that may wait at a provider
MAX_COST: Final = (
    1 << 20
)  # tokens that a call counts for: a round adds a quantum, and rounds are run through one by one


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
    waiting: dict[str, deque[_Waiter]] = field(
        default_factory=dict
    )  # by agent, whose turn is next first

    def heads(self) -> Iterator[_Waiter]:
        """The oldest call of each agent, in the order of their turns."""
        return (calls[0] for calls in self.waiting.values())

    def add(self, waiter: _Waiter) -> None:
        """Behind those of its agent."""
        self.waiting.setdefault(waiter.ticket.agent, deque()).append(waiter)

    def remove(self, waiter: _Waiter) -> bool:
        """Its agent's next turn comes after everybody else's. False where it does not wait."""
        calls = self.waiting.get(waiter.ticket.agent)
        if calls is None or waiter not in calls:
            return False
        calls.remove(waiter)
        del self.waiting[waiter.ticket.agent]
        if calls:
            self.waiting[waiter.ticket.agent] = calls
        return True


class FairQueue:
    """`slots` calls at once, of no agent more than `crowd` allows. Used by one event loop."""

    def __init__(self, slots: int, concurrency: ConcurrencyLimit) -> None:
        self.slots = slots
        self.running = 0
        self._concurrency = concurrency
        concurrency.on_release.append(self.dispatch)
        self._flows: dict[str, _Flow] = {}
        self._round: deque[_Flow] = deque()  # flows that wait, in the order of their turns

    @property
    def depth(self) -> int:
        """Calls that wait."""
        return sum(len(calls) for flow in self._round for calls in flow.waiting.values())

    async def acquire(self, ticket: ConcurrencyTicket, cost: int) -> float:
        """Returns at this call's turn with the seconds waited; `leave` must follow. Raises Answer for a full queue."""
        loop = asyncio.get_running_loop()
        flow = self._flows.setdefault(ticket.flow, _Flow(ticket.flow, ticket.weight))
        flow.weight = ticket.weight
        if len(flow.waiting.get(ticket.agent, ())) >= MAX_WAITING:
            raise ModelGatewayError(
                "budget",
                f"{MAX_WAITING} calls of this agent wait already",
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
            else:  # its turn came as it went
                self.release(ticket)
            raise
        return loop.time() - waiter.since

    def release(self, ticket: ConcurrencyTicket) -> None:
        """A call is over: its slot is free, and its agent may have another, at this provider or at one beside it."""
        self.running -= 1
        self._concurrency.release(ticket)

    def dispatch(self) -> None:
        """Gives the free slots away."""
        blocked = 0  # flows in a row of which no call may go yet: each of their agents has as many as it may
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
        """A flow that waits no more saves nothing up."""
        if not flow.waiting:
            flow.deficit = 0
            self._round.remove(flow)
            self._flows.pop(flow.key, None)
