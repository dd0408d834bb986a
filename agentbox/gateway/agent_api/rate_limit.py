"""Rate limit per agent: a token bucket of calls, and a number of concurrent calls."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from agentbox.gateway.agent_api.errors import BUSY, AgentApiError

RATE: Final = 1000.0  # sustained calls a second
BURST: Final = 2000.0  # bucket size in calls
MAX_CONCURRENT: Final = 32  # concurrent calls


class CallRateLimit:
    """Limits calls by agent. Idle entries are discarded."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens, time of the last update
        self._running: dict[str, int] = {}

    @contextmanager
    def acquire(self, agent_id: str) -> Iterator[None]:
        """Admits one call for the duration of the context. Raises AgentApiError."""
        now = time.monotonic()
        tokens, updated = self._buckets.get(agent_id, (BURST, now))
        tokens = min(BURST, tokens + (now - updated) * RATE)
        running = self._running.get(agent_id, 0)
        if tokens < 1 or running >= MAX_CONCURRENT:
            self._buckets[agent_id] = tokens, now
            reason = (
                f"{MAX_CONCURRENT} calls are in progress"
                if tokens >= 1
                else f"the maximum is {RATE:g} calls a second"
            )
            raise AgentApiError(
                BUSY,
                f"cannot accept another call: {reason}",
                rule="limit:agent-api",
                code="rate-limited",
                retry_after=1,
            )
        self._buckets[agent_id] = tokens - 1, now
        self._running[agent_id] = running + 1
        try:
            yield
        finally:
            self._running[agent_id] -= 1
            if not self._running[agent_id]:
                del self._running[agent_id]
                self._discard_idle(now)

    def _discard_idle(self, now: float) -> None:
        if len(self._buckets) > 1024:
            self._buckets = {
                agent_id: (tokens, updated)
                for agent_id, (tokens, updated) in self._buckets.items()
                if now - updated < BURST / RATE
            }
