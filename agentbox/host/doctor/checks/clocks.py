"""Clocks: limits and budgets need a monotonic clock, journals and tokens a correct one."""

import ctypes
import os
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from agentbox.host.doctor.check_context import CheckContext, existing_ancestor
from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.engines.command import run

NAME = "clocks"
TITLE = "synchronised and monotonic clocks"
MAX_SKEW_SECONDS = 2.0  # above the delays of a busy host, well below the resolution of expiries
_SAMPLES = 20_000
_TIME_ERROR = 5  # linux/timex.h: not synchronised
_MIN_TIME = 1_735_689_600  # 2025-01-01: before the first release


class _Timex(ctypes.Structure):
    """`struct timex` of adjtimex(2), 208 bytes; `modes` 0 only reads."""

    _fields_ = (("modes", ctypes.c_uint), ("rest", ctypes.c_byte * 204))


def run_check(host: CheckContext) -> Iterator[CheckResult]:
    yield _check_monotonic()
    yield _check_wall()
    yield _check_skew(
        "files",
        _file_clock_skew(host),
        "the file system of the state directory",
        "Fix the clock of the file server.",
    )
    if host.is_container and host.daemon.state == "answers":
        text = run(
            ["docker", "info", "--format", "{{.SystemTime}}"], doing="query docker's time"
        ).strip()
        skew = datetime.fromisoformat(text).timestamp() - time.time()
        yield _check_skew("engine", skew, "the engine", "Fix the clock of the engine's host.")


def _check_monotonic() -> CheckResult:
    previous = time.monotonic_ns()
    for _ in range(_SAMPLES):
        now = time.monotonic_ns()
        if now < previous:
            return CheckResult(
                check=NAME,
                subject="monotonic",
                state="bad",
                message=f"the monotonic clock went back by {previous - now} ns",
                advice="Choose another clock source (`/sys/devices/system/clocksource`).",
            )
        previous = now
    return CheckResult(
        check=NAME,
        subject="monotonic",
        state="good",
        message=f"never went back in {_SAMPLES} readings",
    )


def _check_wall() -> CheckResult:
    now = time.time()
    if now < _MIN_TIME:
        return CheckResult(
            check=NAME,
            subject="wall",
            state="bad",
            message=f"the date is {datetime.fromtimestamp(now):%Y-%m-%d}",
            advice="Set the clock.",
        )
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(_Timex(modes=0)))
    if state == _TIME_ERROR:
        return CheckResult(
            check=NAME,
            subject="wall",
            state="note",
            message="the kernel reports an unsynchronised clock",
            advice=(
                "Run a time service (systemd-timesyncd, chrony) if journals of several hosts are "
                "compared."
            ),
        )
    return CheckResult(
        check=NAME,
        subject="wall",
        state="good",
        message="the kernel reports a synchronised clock",
    )


def _file_clock_skew(host: CheckContext) -> float:
    """Seconds by which the time of a new file is ahead. Raises OSError."""
    directory = existing_ancestor(host.state.directory)
    if not os.access(directory, os.W_OK):
        directory = Path(tempfile.gettempdir())
    with tempfile.NamedTemporaryFile(dir=directory) as stream:
        stream.write(b"x")
        stream.flush()
        return os.fstat(stream.fileno()).st_mtime - time.time()


def _check_skew(subject: str, skew: float, source: str, advice: str) -> CheckResult:
    ok = abs(skew) <= MAX_SKEW_SECONDS
    return CheckResult(
        check=NAME,
        subject=subject,
        state="good" if ok else "warning",
        facts={"skew_seconds": round(skew, 3)},
        message=f"{source} is {abs(skew):.2f} s {'ahead' if skew > 0 else 'behind'}",
        advice="" if ok else advice,
    )
