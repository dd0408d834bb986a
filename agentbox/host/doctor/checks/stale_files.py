"""Stale files of killed commands or crashed boxes: partial files, locks, records."""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from agentbox.core.files.atomic_text import wrap_os_errors
from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult, Fix
from agentbox.host.engines.docker.daemon import start_ticks

NAME = "leftovers"
TITLE = "no stale files of killed commands or boxes"
_DAEMON_FILE = "dockerd.json"  # agentbox.host.engines.docker.daemon


def run_check(host: CheckContext) -> Iterator[CheckResult]:
    yield _check_lock(host.state.directory / "up.lock")
    yield _check_partial_files(host.state.directory)
    yield _check_record(host)
    yield from _check_daemon(host.paths.state_root / _DAEMON_FILE)


def _check_lock(path: Path) -> CheckResult:
    """The kernel releases the lock with its process, so a locked file has a live owner."""
    if not path.exists():
        return CheckResult(
            check=NAME, subject="lock", state="good", message="no command is using the box"
        )
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 16, 0).decode("ascii", "replace").strip() or "unknown"
        return CheckResult(
            check=NAME,
            subject="lock",
            state="note",
            message=f"another agentbox command is using the box (pid {holder})",
            advice="Wait until it ends, or stop it; this releases the lock.",
        )
    finally:
        os.close(descriptor)
    return CheckResult(
        check=NAME, subject="lock", state="good", message="no command is using the box"
    )


def _check_partial_files(directory: Path) -> CheckResult:
    files = sorted(directory.glob(".*.new")) if directory.exists() else []
    if not files:
        return CheckResult(check=NAME, subject="files", state="good", message="no partial file")
    names = ", ".join(path.name for path in files)
    return CheckResult(
        check=NAME,
        subject="files",
        state="warning",
        message=f"partial files of a killed command: {names}",
        advice=f"Remove them from {directory}; they are never read.",
        fix=Fix(f"Remove {names} from {directory}?", partial(_remove, files)),
    )


def _check_record(host: CheckContext) -> CheckResult:
    if host.record is None:
        return CheckResult(
            check=NAME,
            subject="box",
            state="good",
            message="no box was started, or it was removed",
        )
    if host.is_container and host.daemon.state != "answers":
        return CheckResult(
            check=NAME,
            subject="box",
            state="unknown",
            message="the engine does not respond: cannot determine whether the box runs",
        )
    status = host.engine.inspect(host.record)
    if status.state == "running":
        return CheckResult(check=NAME, subject="box", state="good", message="the box is running")
    return CheckResult(
        check=NAME,
        subject="box",
        state="warning",
        message=f"the box is {status.state}, exit code {status.exit_code}",
        advice=(
            "Restart it with `agentbox up`, see `agentbox logs`, or remove it with `agentbox down`."
        ),
    )


def _check_daemon(path: Path) -> Iterator[CheckResult]:
    if not path.exists():
        return
    try:
        recorded = json.loads(path.read_text(encoding="utf-8"))
        alive = start_ticks(int(recorded["pid"])) == int(recorded["start_ticks"])
    except (ValueError, TypeError, KeyError):
        alive = False
    if alive:
        yield CheckResult(
            check=NAME,
            subject="daemon",
            state="good",
            message="the dockerd started by agentbox is running",
        )
        return
    yield CheckResult(
        check=NAME,
        subject="daemon",
        state="warning",
        message=f"{path} names a dockerd that has ended",
        advice=f"Remove {path}.",
        fix=Fix(f"Remove {path}?", partial(_remove, [path])),
    )


def _remove(paths: Sequence[Path]) -> str:
    for path in paths:
        with wrap_os_errors(f"remove {path}"):
            path.unlink(missing_ok=True)
    return f"removed {', '.join(map(str, paths))}"
