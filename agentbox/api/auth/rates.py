"""How many requests a second a principal may make, where its token says so: a bucket that fills at that rate."""

import time

from agentbox.api.auth.access import Caller
from agentbox.core.slot_errors import RateLimited


class RequestLimiter:
    """One bucket a principal, of one second's requests. Without a rate a caller is not counted."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}  # what is left, and when it was so

    def acquire(self, caller: Caller) -> None:
        """Counts one request. Raises RateLimited with the seconds after which one is served again."""
        if not caller.rate:
            return
        now = time.monotonic()
        available, updated = self._buckets.get(caller.principal, (float(caller.rate), now))
        available = min(float(caller.rate), available + (now - updated) * caller.rate)
        if available < 1:
            self._buckets[caller.principal] = available, now
            raise RateLimited(
                f"cannot serve more than {caller.rate} requests a second to this token",
                retry_after=(1 - available) / caller.rate,
                limit=f"{caller.rate}/s",
            )
        self._buckets[caller.principal] = available - 1, now
