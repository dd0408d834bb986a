"""How often refusals become events: soon at first, then once a minute, so that an agent that goes on asking fills no journal."""

from dataclasses import dataclass, field
from typing import Final

EVENT_SECONDS: Final = 0.1  # between two events of an agent and rule, for the first
BURST_SECONDS: Final = 10.0
MINUTE: Final = 60.0  # between two after that
MOST_AN_HOUR: Final = 600  # events of an agent; beyond that one a minute has a table of all rules
HOUR: Final = 3600.0

Rule = tuple[str, str, str]  # layer, rule, class


@dataclass
class _Rule:
    burst: float  # when it began
    last: float | None = None  # when its last event was due

    def due(self) -> float:
        if self.last is None:
            return self.burst
        soon = self.last + EVENT_SECONDS
        return soon if soon < self.burst + BURST_SECONDS else self.last + MINUTE


@dataclass
class AgentRate:
    """Of one agent. Times are those of a clock that does not step. A rule of which a minute was quiet has a new burst."""

    began: float  # the hour in which events are counted
    told: int = 0
    last: float = 0.0
    rules: dict[Rule, _Rule] = field(default_factory=dict)

    def refused(self, rule: Rule, now: float) -> None:
        """The first refusal that is in no event yet."""
        known = self.rules.get(rule)
        if known is None or known.last is None or now >= known.last + MINUTE:
            self.rules[rule] = _Rule(now)

    def many(self, now: float) -> bool:
        """So many this hour that only tables follow."""
        if now >= self.began + HOUR:
            self.began, self.told = now, 0
        return self.told >= MOST_AN_HOUR

    def due(self, rule: Rule, now: float) -> float:
        """When the next event may be."""
        return self.last + MINUTE if self.many(now) else self.rules[rule].due()

    def tell(self, rules: list[Rule], now: float) -> None:
        """An event of these."""
        self.told, self.last = self.told + 1, now
        for rule in rules:
            self.rules[rule].last = now
