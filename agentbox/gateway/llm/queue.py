"""Who is next at a provider: deficit round robin by weight (Shreedhar and Varghese, 1995), first come first served within one.

A flow is an agent that an operator started, with all that descend from it: more children do not buy a larger share. The cost
of a call is what it reserves, in tokens.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from agentbox.gateway.llm.crowd import Crowd, Place
from agentbox.gateway.llm.words import Answer

QUANTUM: Final = 4096  # tokens that a flow of weight 1 may use a round
WAITING: Final = 32  # calls of one flow that may wait at a provider


@dataclass(slots=True, eq=False)
class _Waiter:
    place: Place
    cost: int
    turn: "asyncio.Future[None]"
    since: float


@dataclass(slots=True, eq=False)
class _Flow:
    key: str
    weight: int
    deficit: int = 0
    waiting: deque[_Waiter] = field(default_factory=deque)


class FairQueue:
    """`slots` calls at once, of no agent more than `crowd` allows. Used by one event loop."""

    def __init__(self, slots: int, crowd: Crowd) -> None:
        self.slots = slots
        self.running = 0
        self._crowd = crowd
        crowd.on_fewer.append(self.serve)
        self._flows: dict[str, _Flow] = {}
        self._round: deque[_Flow] = deque()  # flows that wait, in the order of their turns

    @property
    def depth(self) -> int:
        """Calls that wait."""
        return sum(len(flow.waiting) for flow in self._round)

    async def enter(self, place: Place, cost: int) -> float:
        """Returns at this call's turn with the seconds waited; `leave` must follow. Raises Answer for a full queue."""
        loop = asyncio.get_running_loop()
        flow = self._flows.setdefault(place.flow, _Flow(place.flow, place.weight))
        flow.weight = place.weight
        if len(flow.waiting) >= WAITING:
            raise Answer("budget", f"{WAITING} calls of this agent wait already", rule="budget:concurrent", wait=1.0)
        waiter = _Waiter(place, cost, loop.create_future(), loop.time())
        flow.waiting.append(waiter)
        if len(flow.waiting) == 1:
            self._round.append(flow)
        self.serve()
        try:
            await waiter.turn
        except asyncio.CancelledError:
            if waiter in flow.waiting:
                flow.waiting.remove(waiter)
                self._settle(flow)
                self.serve()
            else:  # its turn came as it went
                self.leave(place)
            raise
        return loop.time() - waiter.since

    def leave(self, place: Place) -> None:
        """A call is over: its slot is free, and its agent may have another, at this provider or at one beside it."""
        self.running -= 1
        self._crowd.give_back(place)

    def serve(self) -> None:
        """Gives the free slots away."""
        blocked = 0  # flows in a row whose first call its agent may not have yet
        while self._round and self.running < self.slots and blocked < len(self._round):
            flow = self._round[0]
            first = flow.waiting[0]
            if first.cost > flow.deficit:
                flow.deficit += QUANTUM * flow.weight
                self._round.rotate(-1)
                blocked = 0
            elif self._crowd.take(first.place):
                blocked = 0
                flow.deficit -= first.cost
                flow.waiting.popleft()
                self._settle(flow)
                self.running += 1
                first.turn.set_result(None)
            else:
                self._round.rotate(-1)
                blocked += 1

    def _settle(self, flow: _Flow) -> None:
        """A flow that waits no more saves nothing up."""
        if not flow.waiting:
            flow.deficit = 0
            self._round.remove(flow)
            self._flows.pop(flow.key, None)
