"""How far leases must be moved so that only time in which their holders could renew them counts."""

import threading
import time

from agentbox.adapters.runtime.adapter import Clock

LOOK_SECONDS = 1.0  # between two looks of a store that is not used
_STEP = 1.0  # seconds by which the wall clock leaves the other before it counts as a step
_STOPPED = 4.0  # seconds without a look: this process did not run


class LeaseTime:
    """Expiry is stored as wall time, which others read. A step of that clock, a suspended machine and a stopped process are
    seen by the next look, and owed to every lease: what it had left before, it has left after. Used by any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._owed = 0
        self._looked = time.monotonic()
        self._wall, self._elapsed = clock.now().timestamp(), clock.monotonic()

    def look(self) -> bool:
        """Whether leases are owed anything."""
        with self._lock:
            looked, wall, elapsed = time.monotonic(), self._clock.now().timestamp(), self._clock.monotonic()
            passed = elapsed - self._elapsed
            step = wall - self._wall - passed  # a suspended machine stops the other clock: a step too
            owed = step if abs(step) >= _STEP else 0.0
            if looked - self._looked >= _STOPPED:
                owed += passed
            self._owed += round(owed * 1000)
            self._looked, self._wall, self._elapsed = looked, wall, elapsed
            return self._owed != 0

    def take(self) -> int:
        """The milliseconds that are owed, once; `give_back` what could not be paid."""
        self.look()
        with self._lock:
            owed, self._owed = self._owed, 0
            return owed

    def give_back(self, owed: int) -> None:
        with self._lock:
            self._owed += owed
