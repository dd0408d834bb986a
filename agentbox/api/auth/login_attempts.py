"""Bounds failed sign-ins, by address and by name."""

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from agentbox.core.slot_errors import RateLimited

FAILURES: Final = 5
SECONDS: Final = 60.0
_MAX_NAMES: Final = 4096  # addresses and names that are remembered; the oldest are forgotten


class LoginAttempts:
    """Counts failures of the last minute."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._failures: dict[tuple[str, str], deque[float]] = {}

    def check(self, address: str, name: str) -> None:
        """Raises RateLimited for an address or a name with too many failures."""
        now = self._now()
        for key in _keys(address, name):
            times = self._failures.get(key)
            if times is not None and len(times) == FAILURES and now - times[0] < SECONDS:
                raise RateLimited(
                    f"cannot sign in: more than {FAILURES} sign-ins within a minute failed",
                    retry_after=SECONDS - (now - times[0]),
                    limit=f"{FAILURES}/min",
                )

    def failed(self, address: str, name: str) -> None:
        """Counts one failure."""
        now = self._now()
        for key in _keys(address, name):
            times = self._failures.pop(key, None) or deque(maxlen=FAILURES)
            times.append(now)
            self._failures[key] = times  # the newest is last
        while len(self._failures) > _MAX_NAMES:
            del self._failures[next(iter(self._failures))]


def _keys(address: str, name: str) -> tuple[tuple[str, str], ...]:
    keys = (("address", address), ("name", name))
    return tuple(key for key in keys if key[1])
