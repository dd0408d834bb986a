"""How much one agent may ask of the door: a bucket of calls, and a number that are under way."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from agentbox.gateway.agent_api.errors import BUSY, DoorError

RATE: Final = 1000.0  # calls a second that an agent may make for as long as it likes
BURST: Final = 2000.0  # calls at once
AT_ONCE: Final = 32  # under way


class Floods:
    """By agent. What nobody used for long is forgotten."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}  # calls, and when
        self._running: dict[str, int] = {}

    @contextmanager
    def room(self, agent_id: str) -> Iterator[None]:
        """Takes one call. Raises DoorError."""
        now = time.monotonic()
        left, at = self._left.get(agent_id, (BURST, now))
        left = min(BURST, left + (now - at) * RATE)
        running = self._running.get(agent_id, 0)
        if left < 1 or running >= AT_ONCE:
            self._left[agent_id] = left, now
            why = f"{AT_ONCE} calls are under way" if left >= 1 else f"{RATE:g} calls a second are the most"
            raise DoorError(
                BUSY, f"cannot take another call: {why}", rule="limit:door", code="rate-limited", retry_after=1
            )
        self._left[agent_id] = left - 1, now
        self._running[agent_id] = running + 1
        try:
            yield
        finally:
            self._running[agent_id] -= 1
            if not self._running[agent_id]:
                del self._running[agent_id]
                self._forget(now)

    def _forget(self, now: float) -> None:
        if len(self._left) > 1024:
            self._left = {one: (left, at) for one, (left, at) in self._left.items() if now - at < BURST / RATE}
