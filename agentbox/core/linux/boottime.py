"""Time of the mesh: `CLOCK_BOOTTIME`, which no step of the wall clock moves and in which a suspend counts."""

import time


def boottime() -> float:
    """Seconds since the machine started, suspends included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
