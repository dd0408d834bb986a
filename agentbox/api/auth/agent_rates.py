"""Limits how much agents may write: a token bucket in bytes for the agents of each state.

Every write of an agent is a line of the journal; the bodies of events, beads and agents that it
creates count with their size.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from agentbox.api.auth.authentication import Caller
from agentbox.contracts.routes.route import Route
from agentbox.core.slot_errors import RateLimited
from agentbox.policy.limits.registry import WRITE_RATE

BURST: Final = 16 << 20  # bytes in a burst
WRITE_OVERHEAD: Final = 1 << 10  # bytes for a write, besides its body
_READS: Final = ("GET", "HEAD", "OPTIONS")
_BODY_COUNTED: Final = (
    "append_events",
    "create_epic",
    "create_child",
    "close_bead",
    "release",
    "spawn",
)


class AgentWriteLimiter:
    """By state, so that neither a restart nor another agent of the same name refills a bucket."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # bytes, and the time

    def acquire(self, caller: Caller, route: Route, headers: Mapping[str, str]) -> None:
        """Counts a write of an agent. Raises RateLimited with the seconds until it is accepted."""
        if not caller.agent_id or route.method in _READS:
            return
        length = headers.get("content-length", "0") if route.name in _BODY_COUNTED else "0"
        size = WRITE_OVERHEAD + min(
            int(length) if length.isdecimal() else 0, BURST - WRITE_OVERHEAD
        )
        now = self._clock()
        available, updated = self._buckets.get(caller.pod_prefix, (float(BURST), now))
        available = min(BURST, available + (now - updated) * WRITE_RATE)
        if accepted := available >= size:
            available -= size
        self._buckets[caller.pod_prefix] = available, now
        if not accepted:
            raise RateLimited(
                f"cannot write more for agents of {caller.pod_prefix}: "
                f"the maximum is {WRITE_RATE} bytes per second",
                retry_after=(size - available) / WRITE_RATE,
                limit=f"{WRITE_RATE} bytes/s",
            )
