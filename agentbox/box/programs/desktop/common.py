"""What the parts have in common: the folder of this boot, waiting for a socket, becoming a program."""

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
    """The paths of this box. Raises AgentboxError under the process engine: display servers have their sockets at
    places that are the host's there."""
    paths = Paths.for_this_process()
    if not paths.is_container:
        raise AgentboxError(
            "cannot start the desktop without a container: its sockets are below the host's own /tmp and /run",
            "Start the box with --engine docker or podman.",
        )
    return paths


def session_directory(paths: Paths) -> Path:
    """The folder of this boot's cookies and settings, closed to agents."""
    paths.desktop.mkdir(mode=0o700, parents=True, exist_ok=True)
    return paths.desktop


def read_password(file: str) -> str:
    """The first line of the password's file. Raises AgentboxError for an empty one: a desktop is never open."""
    value = Path(file).read_text(encoding="utf-8").partition("\n")[0].strip()
    if not value:
        raise AgentboxError(
            "cannot start the desktop: its password is empty",
            "Set it, or unset it to have one made.",
        )
    return value


def wait_for_socket(socket: Path) -> None:
    """Returns once the socket is there. Raises AgentboxError after 20 s; supervisord then starts the program again."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while not socket.is_socket():
        if time.monotonic() > deadline:
            raise AgentboxError(
                f"cannot start the session: there is no {socket} after {_WAIT_SECONDS:g} s"
            )
        time.sleep(_POLL_SECONDS)


def run_helper(argv: Sequence[str], data: str = "", env: Mapping[str, str] | None = None) -> bytes:
    """What a helper program prints. Raises AgentboxError with its last words when it fails."""
    result = subprocess.run(
        argv,
        input=data.encode(),
        capture_output=True,
        env={**environment(), **(env or {})},
        check=False,
    )
    if result.returncode:
        message = (result.stderr or result.stdout).decode(errors="replace").strip()
        raise AgentboxError(f"cannot start the desktop: {argv[0]} says {message[-300:]!r}")
    return result.stdout


def exec_program(argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
    """This process becomes that program, under the same pid. Raises OSError."""
    os.execve(argv[0], list(argv), {**environment(), **(env or {})})
