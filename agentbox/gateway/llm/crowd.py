"""How many calls of an agent are in flight: its own bound and that of every ancestor."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from agentbox.policy.rights.standing import Standing


@dataclass(frozen=True, slots=True)
class Place:
    """One call's place among those of its agent and of its ancestors. `flow`: the outermost ancestor, or the agent itself."""

    agent: str
    bounds: tuple[tuple[str, int], ...]
    flow: str
    weight: int

    @classmethod
    def of(cls, who: Standing) -> "Place":
        """Weights are the outermost ancestor's: its children share its turn."""
        chain = [(who.agent_id, who.budget), *((one.agent_id, one.budget) for one in who.ancestors)]
        bounds = tuple((key, budget.max_concurrent) for key, budget in chain if budget is not None)
        outermost, budget = chain[-1]
        return cls(who.agent_id, bounds, outermost, budget.weight if budget is not None else 1)


class Crowd:
    """Counts calls in flight by agent. `on_fewer` are called when there are fewer: what waits may go on."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()
        self.on_fewer: list[Callable[[], None]] = []

    def has_room(self, place: Place) -> bool:
        """Whether every bound allows one more."""
        return all(self._calls[key] < bound for key, bound in place.bounds)

    def take(self, place: Place) -> None:
        """One more, where there is room."""
        self._calls.update(key for key, _ in place.bounds)

    def give_back(self, place: Place) -> None:
        """One fewer."""
        for key, _ in place.bounds:
            self._calls[key] -= 1
            if self._calls[key] <= 0:
                del self._calls[key]
        for serve in self.on_fewer:
            serve()
