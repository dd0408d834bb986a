"""dockerd on a machine without a service manager: started detached, stopped only if agentbox
started it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from agentbox.core import mount_namespace
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import wrap_os_errors, write_atomically
from agentbox.core.paths import environment
from agentbox.host.engines.command import succeeds
from agentbox.host.engines.docker.daemon_status import is_reachable
from agentbox.host.engines.interrupts import deferred_interrupts
from agentbox.host.engines.sudo_user import make_directory
from agentbox.host.uninstall.host_traces import note_daemon
from agentbox.host.uninstall.inventory import Inventory

_WAIT_SECONDS = 20.0
_POLL_SECONDS = 0.1
_ATTEMPTS = 2
_TAIL = 20
_PID_RECORD = "dockerd.json"  # pid and start time of the daemon started by agentbox
_PID_FILE = Path("/var/run/docker.pid")
_MARK = "AGENTBOX_DAEMON"  # in the environment of a dockerd that agentbox started: its directory


def is_installed() -> bool:
    """True if this machine has the daemon; a client alone does not count."""
    return shutil.which("dockerd") is not None or Path("/usr/sbin/dockerd").exists()


def start(directory: Path) -> None:
    """Starts dockerd and waits for its socket. Raises AgentboxError (exit 6 with the last log
    lines, exit 3 if not root).
    """
    if Path("/run/systemd/system").exists():
        _start_service()
        return
    if os.geteuid() != 0:
        raise AgentboxError(
            "cannot start the container engine: dockerd needs root",
            "Run this command with sudo, or start dockerd, or use --engine process.",
            exit_code=ExitCode.PREREQUISITE,
        )
    log = directory / "dockerd.log"
    deadline = time.monotonic() + _WAIT_SECONDS
    for attempt in range(1, _ATTEMPTS + 1):
        process = _spawn(directory, log)
        while time.monotonic() < deadline and (process.poll() is None or _daemon_runs()):
            if is_reachable():
                # Another daemon started meanwhile and this one exited.
                if process.poll() is not None:
                    (directory / _PID_RECORD).unlink()
                return
            time.sleep(_POLL_SECONDS)
        if process.poll() is None:
            break
        deadline += (
            _WAIT_SECONDS / attempt
        )  # after a killed daemon its containerd makes the first attempt fail
    outcome = (
        f"it ended with code {process.poll()}"
        if process.poll() is not None
        else f"not within {_WAIT_SECONDS:.0f} s"
    )
    tail = "".join(
        f"\n  | {line}" for line in log.read_text(errors="replace").splitlines()[-_TAIL:]
    )
    raise AgentboxError(
        f"cannot start the container engine: dockerd does not answer, {outcome}{tail}",
        f"Full log: {log}. Fix the error, or use --engine process.",
        exit_code=ExitCode.ENGINE,
    )


def _spawn(directory: Path, log: Path) -> subprocess.Popen[bytes]:
    """Starts dockerd detached and records its pid."""
    _remove_stale_pid_file()
    with wrap_os_errors(f"write {log}"):
        note_daemon(Inventory(directory))
        make_directory(directory)
        # A daemon without a recorded pid could not be stopped later.
        with log.open("ab") as stream, deferred_interrupts():
            process = subprocess.Popen(
                [shutil.which("dockerd") or "/usr/sbin/dockerd"],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
                cwd="/",
                env={**environment(), _MARK: str(directory)},
                preexec_fn=mount_namespace.preexec_function(),
            )
            identity = {"pid": process.pid, "start_ticks": start_ticks(process.pid)}
            write_atomically(directory / _PID_RECORD, json.dumps(identity))
    return process


def stop(directory: Path) -> bool:
    """Stops a daemon that `start` started; False if there is none."""
    record_file = directory / _PID_RECORD
    try:
        recorded = json.loads(record_file.read_text())
        pid, ticks = int(recorded["pid"]), int(recorded["start_ticks"])
    except FileNotFoundError:
        return False
    except (ValueError, TypeError, KeyError):
        record_file.unlink()
        return False
    if start_ticks(pid) != ticks:
        record_file.unlink()
        return False
    terminate(pid, directory)
    record_file.unlink()
    return True


def terminate(pid: int, directory: Path) -> None:
    """Ends a dockerd and waits for its end. Raises AgentboxError (exit 6)."""
    ticks = start_ticks(pid)
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _WAIT_SECONDS
    while start_ticks(pid) == ticks != 0:
        if time.monotonic() > deadline:
            raise AgentboxError(
                f"cannot stop dockerd (pid {pid}): it did not end in {_WAIT_SECONDS:.0f} s",
                f"See {directory / 'dockerd.log'}.",
                exit_code=ExitCode.ENGINE,
            )
        time.sleep(_POLL_SECONDS)


def started_by(directory: Path) -> list[int]:
    """The pids of dockerd that agentbox started with this directory, also without their record:
    a killed `up` may not have written it."""
    mark = f"{_MARK}={directory}".encode()
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text().strip() != "dockerd":
                continue
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                pids.append(int(entry.name))
        except OSError:  # ended, or another user's
            continue
    return pids


def _daemon_runs() -> bool:
    """True while a dockerd runs on this machine, according to its pid file."""
    try:
        pid = int(_PID_FILE.read_text())
        return Path(f"/proc/{pid}/comm").read_text().strip() == "dockerd" and start_ticks(pid) > 0
    except (OSError, ValueError):
        return False


def _remove_stale_pid_file() -> None:
    """Removes the pid file of a killed daemon: dockerd refuses to start while any process has that
    pid.
    """
    if _PID_FILE.exists() and not _daemon_runs():
        _PID_FILE.unlink()


def start_ticks(pid: int) -> int:
    """Return the kernel's start time of a process, which with the pid identifies it; 0 if it has
    ended or is a zombie.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def _start_service() -> None:
    if not succeeds(["systemctl", "start", "docker"], timeout=60) or not is_reachable():
        raise AgentboxError(
            "cannot start the container engine: `systemctl start docker` failed",
            "See `journalctl -u docker`; as an ordinary user, use sudo.",
            exit_code=ExitCode.ENGINE,
        )
