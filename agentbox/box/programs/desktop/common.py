"""Shared by the components: the directory of this session, waiting for a socket, executing a
program.
"""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths, environment

_WAIT_SECONDS = 20.0
_POLL_SECONDS = 0.05


def box_paths() -> Paths:
    """The paths of this box. Raises AgentboxError under the process engine, where the sockets of
    display servers would be in directories of the host.
    """
    paths = Paths.for_this_process()
    if not paths.is_container:
        raise AgentboxError(
            "cannot start the desktop without a container: "
            "its sockets are below the host's own /tmp and /run",
            "Start the box with --engine docker or podman.",
        )
    return paths


def session_directory(paths: Paths) -> Path:
    """The directory for cookies and settings of this boot, not accessible to agents."""
    paths.desktop.mkdir(mode=0o700, parents=True, exist_ok=True)
    return paths.desktop


def read_password(file: str) -> str:
    """The first line of the password file. Raises AgentboxError for an empty one: a desktop always
    has a password.
    """
    value = Path(file).read_text(encoding="utf-8").partition("\n")[0].strip()
    if not value:
        raise AgentboxError(
            "cannot start the desktop: the password is empty",
            "Set it, or unset it to generate one.",
        )
    return value


def wait_for_socket(socket: Path) -> None:
    """Waits until the socket exists. Raises AgentboxError after 20 s; supervisord then restarts the
    program.
    """
    deadline = time.monotonic() + _WAIT_SECONDS
    while not socket.is_socket():
        if time.monotonic() > deadline:
            raise AgentboxError(
                f"cannot start the session: {socket} is missing after {_WAIT_SECONDS:g} s"
            )
        time.sleep(_POLL_SECONDS)


def run_helper(argv: Sequence[str], data: str = "", env: Mapping[str, str] | None = None) -> bytes:
    """The output of a helper program. Raises AgentboxError with the end of its error output when it
    fails.
    """
    result = subprocess.run(
        argv,
        input=data.encode(),
        capture_output=True,
        env={**environment(), **(env or {})},
        check=False,
    )
    if result.returncode:
        message = (result.stderr or result.stdout).decode(errors="replace").strip()
        raise AgentboxError(f"cannot start the desktop: {argv[0]} failed with {message[-300:]!r}")
    return result.stdout


def exec_program(argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
    """Replaces this process by that program, under the same pid. Raises OSError."""
    os.execve(argv[0], list(argv), {**environment(), **(env or {})})
