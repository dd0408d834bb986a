"""What the kernel says about processes and time: proc(5). Standard library only.

Every moment here is in seconds of CLOCK_BOOTTIME, the clock in which field 22 of `/proc/<pid>/stat` counts.
"""

import os
import time
from pathlib import Path

_HERTZ = os.sysconf("SC_CLK_TCK")
_STATE, _START = (
    0,
    19,
)  # fields 3 and 22 of proc(5), counted behind the closing parenthesis of the name


def _stat(pid: int) -> list[str]:
    """The fields behind the command name, which may hold anything, a parenthesis too."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since the host's start; with the pid it names one process. None: gone."""
    try:
        return int(_stat(pid)[_START])
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid: int, ticks: int | None = None) -> bool:
    """True while that very process runs: a zombie has ended, and another start time is another process."""
    try:
        fields = _stat(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[_STATE] not in "ZX" and (ticks is None or int(fields[_START]) == ticks)


def now() -> float:
    """The present in seconds since the host's start, suspension included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def ticks_to_seconds(ticks: int) -> float:
    """A start time of `start_ticks` on the scale of `now`; its grain is 10 ms."""
    return ticks / _HERTZ


def status(pid: int | str = "self") -> dict[str, str]:
    """`/proc/<pid>/status` as a table of its lines. Raises OSError."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    return {
        key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())
    }
