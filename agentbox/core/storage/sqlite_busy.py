"""Waits for a database that another process has locked."""

import time

BUSY_MS = 5000
_RETRY_SECONDS = 0.002


class BusyHandler:
    """Retries the lock every few milliseconds, for `seconds`. SQLite's own handler backs off to 100
    ms, and misses every gap of a process that writes continuously.
    """

    def __init__(self, seconds: float = BUSY_MS / 1000) -> None:
        self._seconds, self._deadline = seconds, 0.0

    def __call__(self, attempts: int) -> bool:
        """Whether to retry. `attempts` were made before for the same lock."""
        if attempts == 0:
            self._deadline = time.monotonic() + self._seconds
        time.sleep(_RETRY_SECONDS)
        return time.monotonic() < self._deadline
