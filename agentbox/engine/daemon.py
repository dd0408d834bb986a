"""dockerd on a machine without a service manager: started detached by us, stopped only if we started it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from agentbox import ownroot
from agentbox.engine.command import succeeds
from agentbox.errors import AgentboxError, ExitCode

_WAIT_SECONDS = 20.0
_POLL_SECONDS = 0.1


def answers() -> bool:
    """True when a docker daemon answers this user."""
    return shutil.which("docker") is not None and succeeds(["docker", "version", "--format", "{{.Server.Version}}"])


def installed() -> bool:
    """True when this machine has the daemon; a client alone does not count."""
    return shutil.which("dockerd") is not None or Path("/usr/sbin/dockerd").exists()


def start(folder: Path) -> None:
    """Starts dockerd and waits for its socket. Raises AgentboxError (exit 6 with its last log lines, exit 3 if not root)."""
    if Path("/run/systemd/system").exists():
        _start_service()
        return
    if os.geteuid() != 0:
        raise AgentboxError(
            "cannot start the container engine: dockerd needs root",
            "Run this command with sudo, or start dockerd, or use --engine process.",
            exit_code=ExitCode.PREREQUISITE,
        )
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "dockerd.log"
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [shutil.which("dockerd") or "/usr/sbin/dockerd"],
            stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True, cwd="/", preexec_fn=ownroot.preparation(),
        )  # fmt: skip
    (folder / "dockerd.json").write_text(json.dumps({"pid": process.pid, "start_ticks": start_ticks(process.pid)}))
    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if answers():
            return
        time.sleep(_POLL_SECONDS)
    tail = "\n  ".join(log.read_text(errors="replace").splitlines()[-20:])
    raise AgentboxError(
        f"cannot start the container engine: dockerd did not answer\n  {tail}",
        f"Whole log: {log}",
        exit_code=ExitCode.ENGINE,
    )


def stop(folder: Path) -> bool:
    """Stops a daemon that `start` started; False when there is none of ours."""
    note = folder / "dockerd.json"
    if not note.exists():
        return False
    known = json.loads(note.read_text())
    note.unlink()
    if start_ticks(known["pid"]) != known["start_ticks"]:
        return False
    os.kill(known["pid"], signal.SIGTERM)
    deadline = time.monotonic() + _WAIT_SECONDS
    while start_ticks(known["pid"]) == known["start_ticks"] and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return True


def start_ticks(pid: int) -> int:
    """The kernel's start time of a process, which with the pid names it for ever; 0 when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def _start_service() -> None:
    if not succeeds(["systemctl", "start", "docker"], timeout=60) or not answers():
        raise AgentboxError(
            "cannot start the container engine: `systemctl start docker` failed",
            "See `journalctl -u docker`; as an ordinary user, use sudo.",
            exit_code=ExitCode.ENGINE,
        )
