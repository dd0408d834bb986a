"""Clock of the mesh: `CLOCK_BOOTTIME` is not affected by changes of the wall clock and includes
suspends.
"""

import time


def boottime() -> float:
    """Seconds since the machine started, suspends included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
