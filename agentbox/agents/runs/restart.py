"""Restart policy of an agent that has ended."""

from collections.abc import Sequence
from typing import Literal

from agentbox.contracts.orchestrator import ExitRecord
from agentbox.manifest.tables.agents import RestartTable

STABLE_SECONDS = 300.0  # a generation that runs this long resets the delays

RestartPolicy = Literal["never", "on-failure", "always"]


def should_restart(policy: RestartPolicy, exit_record: ExitRecord) -> bool:
    """A requested stop is final under every policy."""
    if exit_record.reason == "terminated" or policy == "never":
        return False
    return policy == "always" or exit_record.code != 0


def delay(
    restarts: Sequence[float], now: float, uptime: float, backoff: RestartTable
) -> float | None:
    """Seconds to wait, doubling; None if the window already has the maximum number of restarts.

    `restarts` are the times of earlier restarts in seconds of one clock, oldest first; `uptime` is
    how long the last generation ran.
    """
    recent = [moment for moment in restarts if now - moment < backoff.window_seconds]
    if len(recent) >= backoff.max_restarts:
        return None
    step = 0 if uptime >= STABLE_SECONDS else len(recent)
    return min(backoff.backoff_max_seconds, backoff.backoff_seconds * 2.0**step)
