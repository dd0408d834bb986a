"""When an agent that ended is started again (slots.md O11)."""

from collections.abc import Sequence
from typing import Literal

from agentbox.adapters.orchestrator.contract import ExitRecord

FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0
WINDOW_SECONDS, MOST_RESTARTS = 300.0, 5
STEADY_SECONDS = 300.0  # a life as long as this starts the delays anew

Policy = Literal["never", "on-failure", "always"]


def wanted(policy: Policy, end: ExitRecord) -> bool:
    """A requested stop is final under every policy."""
    if end.reason == "terminated" or policy == "never":
        return False
    return policy == "always" or end.code != 0


def delay(restarts: Sequence[float], now: float, lived: float) -> float | None:
    """Seconds to wait, doubling; None when this would be the 6th restart within 300 s.

    `restarts` are the moments of those done, in seconds of one clock, oldest first; `lived` is how long the last life
    was.
    """
    recent = [moment for moment in restarts if now - moment < WINDOW_SECONDS]
    if len(recent) >= MOST_RESTARTS:
        return None
    step = 0 if lived >= STEADY_SECONDS else len(recent)
    return min(LONGEST_SECONDS, FIRST_SECONDS * 2.0**step)
