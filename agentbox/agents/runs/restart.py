"""When an agent that ended is started again (O11)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentbox.contracts.orchestrator import ExitRecord

STEADY_SECONDS = 300.0  # a life as long as this starts the delays anew

Policy = Literal["never", "on-failure", "always"]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How often, and how soon; as in `[agents.<name>.restart]`, whose defaults these are."""

    max_restarts: int = 5
    window_seconds: float = 300.0
    backoff_seconds: float = 1.0
    backoff_max_seconds: float = 60.0

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "Pace":
        """Of a table, or the defaults for an empty one."""
        return cls(**{name: value for name, value in table.items() if name != "policy"})


DEFAULT = Pace()


def wanted(policy: Policy, end: ExitRecord) -> bool:
    """A requested stop is final under every policy."""
    if end.reason == "terminated" or policy == "never":
        return False
    return policy == "always" or end.code != 0


def delay(restarts: Sequence[float], now: float, lived: float, pace: Pace = DEFAULT) -> float | None:
    """Seconds to wait, doubling; None when there would be more restarts in the window than the pace has.

    `restarts` are the moments of those done, in seconds of one clock, oldest first; `lived` is how long the last life
    was.
    """
    recent = [moment for moment in restarts if now - moment < pace.window_seconds]
    if len(recent) >= pace.max_restarts:
        return None
    step = 0 if lived >= STEADY_SECONDS else len(recent)
    return min(pace.backoff_max_seconds, pace.backoff_seconds * 2.0**step)
