"""Concurrency limits of an agent and all its ancestors."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from agentbox.policy.rights.authorization import Authorization


@dataclass(frozen=True, slots=True)
class ConcurrencyTicket:
    """The limits that apply to one call. `flow`: the outermost ancestor, or the agent itself."""

    agent: str
    limits: tuple[tuple[str, int], ...]
    flow: str
    weight: int

    @classmethod
    def for_caller(cls, caller: Authorization) -> "ConcurrencyTicket":
        """The weight is the outermost ancestor's: its descendants share its turn."""
        chain = [
            (caller.agent_id, caller.budget),
            *((ancestor.agent_id, ancestor.budget) for ancestor in caller.ancestors),
        ]
        limits = tuple((key, budget.max_concurrent) for key, budget in chain if budget is not None)
        outermost, budget = chain[-1]
        return cls(caller.agent_id, limits, outermost, budget.weight if budget is not None else 1)


class ConcurrencyLimit:
    """Counts calls in flight by agent. `on_release` callbacks run after each release."""

    def __init__(self) -> None:
        self._in_flight: Counter[str] = Counter()
        self.on_release: list[Callable[[], None]] = []

    def has_capacity(self, ticket: ConcurrencyTicket) -> bool:
        """Whether all limits allow another call."""
        return all(self._in_flight[key] < limit for key, limit in ticket.limits)

    def acquire(self, ticket: ConcurrencyTicket) -> None:
        """Counts one more call."""
        self._in_flight.update(key for key, _ in ticket.limits)

    def release(self, ticket: ConcurrencyTicket) -> None:
        """Counts one call less."""
        for key, _ in ticket.limits:
            self._in_flight[key] -= 1
            if self._in_flight[key] <= 0:
                del self._in_flight[key]
        for callback in self.on_release:
            callback()
