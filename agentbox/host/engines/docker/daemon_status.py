"""Whether a docker daemon responds, and if not, why: each reason has its own remedy."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import environment

LOCAL_SOCKET: Final = "unix:///var/run/docker.sock"
_WAIT_SECONDS: Final = 10
_PEER_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid


@dataclass(frozen=True)
class DaemonStatus:
    """`down`: nothing listens. `silent`: something listens and does not respond. `no-client`: no
    docker program.
    """

    state: Literal["answers", "no-client", "denied", "silent", "down"]
    host: str = LOCAL_SOCKET

    @property
    def is_startable(self) -> bool:
        """True if starting the local daemon would fix the status."""
        return self.host == LOCAL_SOCKET and self.state in {"no-client", "down"}


def query_status() -> DaemonStatus:
    """Queries the daemon that this user's docker client would use."""
    if shutil.which("docker") is None:
        return DaemonStatus("no-client", environment().get("DOCKER_HOST") or LOCAL_SOCKET)
    try:
        done = subprocess.run(
            ["docker", "version", "--format", "{{.Server.Version}}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_WAIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return DaemonStatus("silent", _daemon_address())
    if done.returncode == 0:
        return DaemonStatus("answers", _daemon_address())
    return DaemonStatus(
        "denied" if "permission denied" in done.stderr else "down", _daemon_address()
    )


def is_reachable() -> bool:
    """True if a docker daemon responds to this user."""
    return query_status().state == "answers"


def unreachable_error(doing: str, status: DaemonStatus) -> AgentboxError:
    """Return `cannot <doing>: …` for a daemon that does not respond."""
    if status.state == "denied":
        return AgentboxError(
            f"cannot {doing}: no permission to use the docker daemon at {status.host}",
            "Use sudo, or join the group docker and log in again; or use --engine process.",
            exit_code=ExitCode.PREREQUISITE,
        )
    if status.state == "no-client":
        return AgentboxError(
            f"cannot {doing}: docker is not installed",
            "Install it (up --yes does), or use --engine process.",
            exit_code=ExitCode.PREREQUISITE,
        )
    if status.state == "silent":
        return AgentboxError(
            f"cannot {doing}: the docker daemon at {status.host} did not respond within "
            f"{_WAIT_SECONDS} s",
            "Check its log and restart it if it hangs, or use --engine process.",
            exit_code=ExitCode.ENGINE,
        )
    return AgentboxError(
        f"cannot {doing}: no docker daemon responds at {status.host}",
        "Run ./agentbox.sh up: it starts the daemon of this machine."
        if status.host == LOCAL_SOCKET
        else (
            "DOCKER_HOST or the docker context sets that address: start the daemon there, or "
            "unset it."
        ),
        exit_code=ExitCode.ENGINE,
    )


def daemon_pid(host: str) -> int | None:
    """Return the pid that listens on the daemon's socket; None if it is not local or not
    dockerd.
    """
    if not host.startswith("unix://"):
        return None
    try:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(host.removeprefix("unix://"))
            raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
        pid: int = _PEER_CREDENTIALS.unpack(raw)[0]
        return pid if Path(f"/proc/{pid}/comm").read_text().strip() == "dockerd" else None
    except OSError:
        return None


def _daemon_address() -> str:
    """Return the address that the client uses: DOCKER_HOST, else that of its context."""
    endpoint = ""
    with suppress(subprocess.TimeoutExpired):
        endpoint = subprocess.run(
            ["docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_WAIT_SECONDS,
            check=False,
        ).stdout.strip()
    return endpoint or environment().get("DOCKER_HOST") or LOCAL_SOCKET
