"""How far leases must be moved so that only time in which their holders could renew them counts."""

import threading
import time

from agentbox.adapters.runtime.adapter import Clock

POLL_SECONDS = 1.0  # between two looks of a store that is not used
_MIN_STEP_SECONDS = (
    1.0  # seconds by which the wall clock leaves the other before it counts as a step
)
_STALL_SECONDS = 4.0  # seconds without a look: this process did not run


class LeaseClock:
    """Expiry is stored as wall time, which others read. A step of that clock, a suspended machine and a stopped process are
    seen by the next look, and owed to every lease: what it had left before, it has left after. Used by any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._correction_ms = 0
        self._polled_at = time.monotonic()
        self._wall, self._elapsed = clock.now().timestamp(), clock.monotonic()

    def poll(self) -> bool:
        """Whether leases are owed anything."""
        with self._lock:
            polled_at, wall, elapsed = (
                time.monotonic(),
                self._clock.now().timestamp(),
                self._clock.monotonic(),
            )
            passed = elapsed - self._elapsed
            step = (
                wall - self._wall - passed
            )  # a suspended machine stops the other clock: a step too
            correction = step if abs(step) >= _MIN_STEP_SECONDS else 0.0
            if polled_at - self._polled_at >= _STALL_SECONDS:
                correction += passed
            self._correction_ms += round(correction * 1000)
            self._polled_at, self._wall, self._elapsed = polled_at, wall, elapsed
            return self._correction_ms != 0

    def take_correction(self) -> int:
        """The milliseconds that are owed, once; `give_back` what could not be paid."""
        self.poll()
        with self._lock:
            correction_ms, self._correction_ms = self._correction_ms, 0
            return correction_ms

    def restore_correction(self, correction_ms: int) -> None:
        with self._lock:
            self._correction_ms += correction_ms
