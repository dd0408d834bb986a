"""The log of a box that no container engine keeps: one file for all its programs, renamed when it is full; one earlier file
is kept."""

import os
import signal
from pathlib import Path
from typing import Final

from agentbox.core.paths import Paths
from agentbox.plan.supervisord_files import boot_log, supervisord_pid

MAX_BYTES: Final = 8 << 20


def rotated_path(log: Path) -> Path:
    """Where what was written before lies."""
    return log.with_name(f"{log.name}.1")


def rotate(paths: Paths, max_bytes: int = MAX_BYTES) -> bool:
    """Renames a file of `most` bytes and more, and has supervisord, which started this program, open a new one: no line is
    lost. False while it is smaller, and where supervisord does not write it. Raises OSError."""
    log, pid_file = boot_log(paths), supervisord_pid(paths)
    if paths.is_container or not log.exists() or log.stat().st_size < max_bytes:
        return False
    if not pid_file.exists() or int(pid_file.read_text()) != os.getppid():
        return False
    log.replace(rotated_path(log))
    os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    os.kill(os.getppid(), signal.SIGUSR2)
    return True
