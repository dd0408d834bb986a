"""Requests per second of a principal, if its token has a rate: a token bucket."""

import time

from agentbox.api.auth.authentication import Caller
from agentbox.core.slot_errors import RateLimited


class RequestLimiter:
    """One bucket per principal, with the requests of one second. Callers without a rate are not
    counted.
    """

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}  # remaining requests, and the time

    def acquire(self, caller: Caller) -> None:
        """Counts one request. Raises RateLimited with the seconds until the next one is
        accepted.
        """
        if not caller.rate:
            return
        now = time.monotonic()
        available, updated = self._buckets.get(caller.principal, (float(caller.rate), now))
        available = min(float(caller.rate), available + (now - updated) * caller.rate)
        if available < 1:
            self._buckets[caller.principal] = available, now
            raise RateLimited(
                f"cannot serve more than {caller.rate} requests per second to this token",
                retry_after=(1 - available) / caller.rate,
                limit=f"{caller.rate}/s",
            )
        self._buckets[caller.principal] = available - 1, now
