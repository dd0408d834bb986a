"""The observed values of one limit: its peak, and when to warn."""

from typing import Any

from agentbox.core.frozen import frozen
from agentbox.policy.limits.registry import REARM_BELOW, WARN_AT, config_path


@frozen
class Breach:
    """A limit that was exceeded, or nearly: `observed` and `cap` in the unit of the registry."""

    limit: str
    observed: float
    cap: float

    def to_json(self) -> dict[str, Any]:
        """With the manifest key that sets it: the members of errors, events and stream items."""
        return {
            "limit": self.limit,
            "observed": self.observed,
            "cap": self.cap,
            "config_path": config_path(self.limit),
        }


class Gauge:
    """One limit of one agent. `cap` 0 means unlimited: the peak is recorded, without warnings."""

    __slots__ = ("_last", "_warned", "cap", "limit", "peak")

    def __init__(self, limit: str, cap: float) -> None:
        self.limit, self.cap = limit, cap
        self.peak: float = 0
        self._last: float = 0
        self._warned = False

    @property
    def to_rearm(self) -> float:
        """The decrease after which it can warn again; infinite if it can warn now."""
        return self._last - REARM_BELOW * self.cap if self._warned else float("inf")

    def observe(self, observed: float) -> Breach | None:
        """Updates the peak. Returns a warning when 80 % are exceeded for the first time since the
        value was below 50 %.
        """
        self.peak, self._last = max(self.peak, observed), observed
        if self.cap and observed < REARM_BELOW * self.cap:
            self._warned = False
        if not self.cap or self._warned or observed < WARN_AT * self.cap:
            return None
        self._warned = True
        return Breach(limit=self.limit, observed=observed, cap=self.cap)
