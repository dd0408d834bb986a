"""How much one agent may ask of the door: a bucket of calls, and a number that are under way."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from agentbox.gateway.agent_api.errors import BUSY, AgentApiError

RATE: Final = 1000.0  # calls a second that an agent may make for as long as it likes
BURST: Final = 2000.0  # calls at once
MAX_CONCURRENT: Final = 32  # under way


class CallRateLimit:
    """By agent. What nobody used for long is forgotten."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}  # calls, and when
        self._running: dict[str, int] = {}

    @contextmanager
    def acquire(self, agent_id: str) -> Iterator[None]:
        """Takes one call. Raises DoorError."""
        now = time.monotonic()
        tokens, updated = self._buckets.get(agent_id, (BURST, now))
        tokens = min(BURST, tokens + (now - updated) * RATE)
        running = self._running.get(agent_id, 0)
        if tokens < 1 or running >= MAX_CONCURRENT:
            self._buckets[agent_id] = tokens, now
            reason = (
                f"{MAX_CONCURRENT} calls are under way"
                if tokens >= 1
                else f"{RATE:g} calls a second are the most"
            )
            raise AgentApiError(
                BUSY,
                f"cannot take another call: {reason}",
                rule="limit:door",
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
