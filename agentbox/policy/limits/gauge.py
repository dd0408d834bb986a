"""What was seen of one limit: the most so far, and whether that is worth a warning."""

from dataclasses import dataclass
from typing import Any

from agentbox.policy.limits.registry import REARM_BELOW, WARN_AT, config_path


@dataclass(frozen=True, kw_only=True)
class Breach:
    """A limit that was crossed, or nearly: `observed` and `cap` in the unit of the registry."""

    limit: str
    observed: float
    cap: float

    def to_json(self) -> dict[str, Any]:
        """With the key of the manifest that sets it: the members of error, event and stream item alike."""
        return {
            "limit": self.limit,
            "observed": self.observed,
            "cap": self.cap,
            "config_path": config_path(self.limit),
        }


class Gauge:
    """One limit of one agent. `cap` 0 means no bound: the peak is kept, nothing warns."""

    __slots__ = ("_last", "_warned", "cap", "limit", "peak")

    def __init__(self, limit: str, cap: float) -> None:
        self.limit, self.cap = limit, cap
        self.peak: float = 0
        self._last: float = 0
        self._warned = False

    @property
    def to_rearm(self) -> float:
        """What must go before it warns again; infinite while it would."""
        return self._last - REARM_BELOW * self.cap if self._warned else float("inf")

    def observe(self, observed: float) -> Breach | None:
        """Keeps the peak. A warning when 80 % are crossed for the first time since the last look below 50 %."""
        self.peak, self._last = max(self.peak, observed), observed
        if self.cap and observed < REARM_BELOW * self.cap:
            self._warned = False
        if not self.cap or self._warned or observed < WARN_AT * self.cap:
            return None
        self._warned = True
        return Breach(limit=self.limit, observed=observed, cap=self.cap)
