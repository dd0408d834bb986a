"""Rate limits for denial events: frequent at first, then one a minute, so that a persistent agent
cannot flood the journal."""

from dataclasses import dataclass, field
from typing import Final

EVENT_SECONDS: Final = 0.1  # between the first events of an agent and rule
BURST_SECONDS: Final = 10.0
MINUTE: Final = 60.0  # between later events
MAX_PER_HOUR: Final = 600  # events per agent; beyond it one summary a minute
HOUR: Final = 3600.0

RuleKey = tuple[str, str, str]  # layer, rule, class


@dataclass
class _RuleRate:
    burst_start: float  # time of the first denial
    last_event: float | None = None  # time at which the last event was due

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
class DenialRate:
    """Rate of one agent. Times are of a monotonic clock. A rule without denials for a minute starts
    a new burst."""

    hour_start: float  # start of the hour in which events are counted
    event_count: int = 0
    last_event: float = 0.0
    rules: dict[RuleKey, _RuleRate] = field(default_factory=dict)

    def on_denied(self, rule: RuleKey, now: float) -> None:
        """Register the first denial that no event contains yet."""
        existing = self.rules.get(rule)
        if existing is None or existing.last_event is None or now >= existing.last_event + MINUTE:
            self.rules[rule] = _RuleRate(now)

    def is_exhausted(self, now: float) -> bool:
        """Whether the hourly limit is reached, so that only summaries follow."""
        if now >= self.hour_start + HOUR:
            self.hour_start, self.event_count = now, 0
        return self.event_count >= MAX_PER_HOUR

    def due(self, rule: RuleKey, now: float) -> float:
        """Time at which the next event may be sent."""
        return self.last_event + MINUTE if self.is_exhausted(now) else self.rules[rule].due()

    def on_event(self, rules: list[RuleKey], now: float) -> None:
        """Register an event about these rules."""
        self.event_count, self.last_event = self.event_count + 1, now
        for rule in rules:
            self.rules[rule].last_event = now
