"""Processes and time from proc(5). Standard library only. All times are in seconds of
CLOCK_BOOTTIME, the clock of field 22 of `/proc/<pid>/stat`.
"""

import os
import time
from pathlib import Path

_HERTZ = os.sysconf("SC_CLK_TCK")
_STATE, _START = (
    0,
    19,
)  # fields 3 and 22 of proc(5), counted from the closing parenthesis of the name


def _stat(pid: int) -> list[str]:
    """The fields after the command name, which may contain anything, even a parenthesis."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()


def start_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot; together with the pid it identifies one
    process. None if it does not exist.
    """
    try:
        return int(_stat(pid)[_START])
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid: int, ticks: int | None = None) -> bool:
    """True while that process runs. A zombie has ended; a different start time is a different
    process.
    """
    try:
        fields = _stat(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[_STATE] not in "ZX" and (ticks is None or int(fields[_START]) == ticks)


def now() -> float:
    """Seconds since boot, including suspends."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def ticks_to_seconds(ticks: int) -> float:
    """Converts `start_ticks` to the scale of `now`; the resolution is 10 ms."""
    return ticks / _HERTZ


def status(pid: int | str = "self") -> dict[str, str]:
    """`/proc/<pid>/status` as a mapping. Raises OSError."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    return {
        key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())
    }
