"""Clocks: limits and budgets count on a clock that never goes back, journals and tokens on one that is right."""

import ctypes
import os
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from agentbox.host.doctor.host import Host, room_at
from agentbox.host.doctor.row import Row
from agentbox.host.engines.command import run

NAME = "clocks"
TITLE = "clocks that agree and never go back"
MOST_SECONDS = 2.0  # ours to choose: far above what a busy host adds, far below what makes an expiry wrong
_SAMPLES = 20_000
_TIME_ERROR = 5  # linux/timex.h: not synchronised
_EARLIEST = 1_735_689_600  # 2025-01-01: no release of this program is older


class _Timex(ctypes.Structure):
    """`struct timex` of adjtimex(2), 208 bytes; `modes` 0 only asks."""

    _fields_ = (("modes", ctypes.c_uint), ("rest", ctypes.c_byte * 204))


def look(host: Host) -> Iterator[Row]:
    yield _monotonic()
    yield _wall()
    yield _apart("files", _file_time(host), "the file system of the state folder", "Mend the time of the file server.")
    if host.contained and host.daemon.state == "answers":
        said = run(["docker", "info", "--format", "{{.SystemTime}}"], doing="ask docker for its time").strip()
        skew = datetime.fromisoformat(said).timestamp() - time.time()
        yield _apart("engine", skew, "the engine", "Mend the time of the machine that the engine runs on.")


def _monotonic() -> Row:
    last = time.monotonic_ns()
    for _ in range(_SAMPLES):
        now = time.monotonic_ns()
        if now < last:
            return Row(check=NAME, subject="monotonic", state="bad", said=f"the monotonic clock went back by {last - now} ns",
                       advice="Choose another clock source (`/sys/devices/system/clocksource`).")  # fmt: skip
        last = now
    return Row(check=NAME, subject="monotonic", state="good", said=f"never went back in {_SAMPLES} readings")


def _wall() -> Row:
    now = time.time()
    if now < _EARLIEST:
        return Row(check=NAME, subject="wall", state="bad", said=f"it is {datetime.fromtimestamp(now):%Y-%m-%d} here", advice="Set the clock.")  # fmt: skip
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(_Timex(modes=0)))
    if state == _TIME_ERROR:
        return Row(check=NAME, subject="wall", state="note", said="the kernel does not know its clock to be synchronised",
                   advice="Run a time service (systemd-timesyncd, chrony) where journals of several hosts are compared.")  # fmt: skip
    return Row(check=NAME, subject="wall", state="good", said="the kernel says that its clock is synchronised")


def _file_time(host: Host) -> float:
    """Seconds by which a file made now is ahead. Raises OSError."""
    folder = room_at(host.state.folder)
    if not os.access(folder, os.W_OK):
        folder = Path(tempfile.gettempdir())
    with tempfile.NamedTemporaryFile(dir=folder) as stream:
        stream.write(b"x")
        stream.flush()
        return os.fstat(stream.fileno()).st_mtime - time.time()


def _apart(subject: str, skew: float, whose: str, advice: str) -> Row:
    fine = abs(skew) <= MOST_SECONDS
    return Row(
        check=NAME, subject=subject, state="good" if fine else "warning", facts={"skew_seconds": round(skew, 3)},
        said=f"{whose} is {abs(skew):.2f} s {'ahead' if skew > 0 else 'behind'}", advice="" if fine else advice,
    )  # fmt: skip
