"""`boot/current.json`: the boot that runs on this state volume, and whether the previous one ended
cleanly. Standard library only.
"""

import fcntl
import os
from dataclasses import dataclass

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic import read_json, replace_json
from agentbox.core.paths import Paths


@dataclass(frozen=True)
class CurrentBoot:
    """`state` is `running` from the end of Stage A, and `clean` after an orderly shutdown."""

    boot_id: str
    state: str


def read_current(paths: Paths) -> CurrentBoot | None:
    """The state left by the last boot; None on a fresh volume. An invalid file counts as `running`:
    unclean.
    """
    try:
        document = read_json(paths.boot_current)
    except ValueError:
        return CurrentBoot("", "running")
    return (
        None
        if document is None
        else CurrentBoot(str(document.get("boot_id", "")), str(document.get("state", "running")))
    )


def mark_running(paths: Paths, boot_id: str) -> None:
    """The last step before supervisord starts the programs that open the slots. Raises OSError."""
    paths.boots.mkdir(parents=True, exist_ok=True)
    replace_json(paths.boot_current, {"boot_id": boot_id, "schema": 1, "state": "running"})


def mark_clean(paths: Paths, boot_id: str) -> None:
    """The last step of the API, after every slot is closed. Does not change the mark of another
    boot.
    """
    current = read_current(paths)
    if current is not None and current.boot_id == boot_id:
        replace_json(paths.boot_current, {"boot_id": boot_id, "schema": 1, "state": "clean"})


def lock_state(paths: Paths) -> int:
    """Locks the state volume for this box until the descriptor is closed. The API holds it while it
    runs.

    Raises AgentboxError (busy) when another box has it, OSError when the volume cannot be written.
    """
    descriptor = os.open(paths.state_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise AgentboxError(
            "cannot use the state volume: another box has it locked",
            "One volume serves one box. Stop the other one, or give this box another meta.name.",
            exit_code=ExitCode.BUSY,
        ) from None
    return descriptor
