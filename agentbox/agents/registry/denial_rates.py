"""How often refusals become events: soon at first, then once a minute, so that an agent that goes on asking fills no journal."""

from dataclasses import dataclass, field
from typing import Final

EVENT_SECONDS: Final = 0.1  # between two events of an agent and rule, for the first
BURST_SECONDS: Final = 10.0
MINUTE: Final = 60.0  # between two after that
MOST_AN_HOUR: Final = 600  # events of an agent; beyond that one a minute has a table of all rules
HOUR: Final = 3600.0

RuleKey = tuple[str, str, str]  # layer, rule, class


@dataclass
class _RuleRate:
    burst_start: float  # when it began
    last_event: float | None = None  # when its last event was due

    def due(self) -> float:
        if self.last_event is None:
            return self.burst_start
        next_event = self.last_event + EVENT_SECONDS
        return (
            next_event
            if next_event < self.burst_start + BURST_SECONDS
            else self.last_event + MINUTE
        )


@dataclass
class AgentRate:
    """Of one agent. Times are those of a clock that does not step. A rule of which a minute was quiet has a new burst."""

    hour_start: float  # the hour in which events are counted
    event_count: int = 0
    last_event: float = 0.0
    rules: dict[RuleKey, _RuleRate] = field(default_factory=dict)

    def on_denied(self, rule: RuleKey, now: float) -> None:
        """The first refusal that is in no event yet."""
        existing = self.rules.get(rule)
        if existing is None or existing.last_event is None or now >= existing.last_event + MINUTE:
            self.rules[rule] = _RuleRate(now)

    def is_exhausted(self, now: float) -> bool:
        """So many this hour that only tables follow."""
        if now >= self.hour_start + HOUR:
            self.hour_start, self.event_count = now, 0
        return self.event_count >= MOST_AN_HOUR

    def due(self, rule: RuleKey, now: float) -> float:
        """When the next event may be."""
        return self.last_event + MINUTE if self.is_exhausted(now) else self.rules[rule].due()

    def on_event(self, rules: list[RuleKey], now: float) -> None:
        """An event of these."""
        self.event_count, self.last_event = self.event_count + 1, now
        for rule in rules:
            self.rules[rule].last_event = now
