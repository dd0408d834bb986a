"""Computes how far to shift leases so that only time in which holders could renew them counts."""

import threading
import time

from agentbox.adapters.runtime.adapter import Clock

POLL_SECONDS = 1.0  # between two polls of an idle store
_MIN_STEP_SECONDS = 1.0  # difference of the clocks that counts as a step
_STALL_SECONDS = 4.0  # without a poll; the process did not run


class LeaseClock:
    """Expiry is stored as wall time, which other processes read. Clock steps, a suspended machine
    and a stopped process are detected by the next poll and added to every lease, so that its
    remaining time stays the same. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._correction_ms = 0
        self._polled_at = time.monotonic()
        self._wall, self._elapsed = clock.now().timestamp(), clock.monotonic()

    def poll(self) -> bool:
        """Return whether leases must be shifted."""
        with self._lock:
            polled_at, wall, elapsed = (
                time.monotonic(),
                self._clock.now().timestamp(),
                self._clock.monotonic(),
            )
            passed = elapsed - self._elapsed
            # the monotonic clock stops during suspend, so this is a step too
            step = wall - self._wall - passed
            correction = step if abs(step) >= _MIN_STEP_SECONDS else 0.0
            if polled_at - self._polled_at >= _STALL_SECONDS:
                correction += passed
            self._correction_ms += round(correction * 1000)
            self._polled_at, self._wall, self._elapsed = polled_at, wall, elapsed
            return self._correction_ms != 0

    def pop_correction(self) -> int:
        """Take the pending shift in milliseconds. Use `restore_correction` if it could not be
        applied."""
        self.poll()
        with self._lock:
            correction_ms, self._correction_ms = self._correction_ms, 0
            return correction_ms

    def restore_correction(self, correction_ms: int) -> None:
        with self._lock:
            self._correction_ms += correction_ms
