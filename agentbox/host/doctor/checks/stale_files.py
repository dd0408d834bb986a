"""What a killed command or a crashed box left behind: half-written files, a held lock, a record of a box that is gone."""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from agentbox.core.files.atomic_text import wrap_os_errors
from agentbox.host.doctor.check_result import CheckResult, Fix
from agentbox.host.doctor.host import Host
from agentbox.host.engines.docker.daemon import start_ticks

NAME = "leftovers"
TITLE = "nothing is left over from a command or a box that was killed"
_DAEMON_FILE = "dockerd.json"  # agentbox.host.engines.docker.daemon


def run_check(host: Host) -> Iterator[CheckResult]:
    yield _check_lock(host.state.directory / "up.lock")
    yield _check_partial_files(host.state.directory)
    yield _check_record(host)
    yield from _check_daemon(host.paths.state_root / _DAEMON_FILE)


def _check_lock(path: Path) -> CheckResult:
    """The kernel lets go of it with its holder, so one that is held has a living holder, and no file need be removed."""
    if not path.exists():
        return CheckResult(
            check=NAME, subject="lock", state="good", message="no command holds the box"
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
            message=f"another agentbox command is at the box (pid {holder})",
            advice="Wait until it ends, or stop it; the lock goes with it.",
        )
    finally:
        os.close(descriptor)
    return CheckResult(check=NAME, subject="lock", state="good", message="no command holds the box")


def _check_partial_files(directory: Path) -> CheckResult:
    files = sorted(directory.glob(".*.new")) if directory.exists() else []
    if not files:
        return CheckResult(
            check=NAME, subject="files", state="good", message="no half-written file"
        )
    names = ", ".join(path.name for path in files)
    return CheckResult(
        check=NAME,
        subject="files",
        state="warning",
        message=f"half-written by a command that was killed: {names}",
        advice=f"Remove them from {directory}; they are never read.",
        fix=Fix(f"Remove {names} from {directory}?", partial(_remove, files)),
    )


def _check_record(host: Host) -> CheckResult:
    if host.record is None:
        return CheckResult(
            check=NAME,
            subject="box",
            state="good",
            message="no box was started, or it was taken down",
        )
    if host.is_container and host.daemon.state != "answers":
        return CheckResult(
            check=NAME,
            subject="box",
            state="unknown",
            message="the engine does not answer: whether the box runs is not known",
        )
    status = host.engine.inspect(host.record)
    if status.state == "running":
        return CheckResult(
            check=NAME, subject="box", state="good", message="the box of the last start runs"
        )
    return CheckResult(
        check=NAME,
        subject="box",
        state="warning",
        message=f"the box of the last start is {status.state}, code {status.exit_code}",
        advice="`agentbox up` boots it again, `agentbox logs` shows how it ended, `agentbox down` forgets it.",
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
            message="the dockerd that agentbox started runs",
        )
        return
    yield CheckResult(
        check=NAME,
        subject="daemon",
        state="warning",
        message=f"{path} tells of a dockerd that is gone",
        advice=f"Remove {path}.",
        fix=Fix(f"Remove {path}?", partial(_remove, [path])),
    )


def _remove(paths: Sequence[Path]) -> str:
    for path in paths:
        with wrap_os_errors(f"remove {path}"):
            path.unlink(missing_ok=True)
    return f"removed {', '.join(map(str, paths))}"
