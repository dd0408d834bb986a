"""The log of a box without a container engine: one file for all programs, renamed when it is full;
one earlier file is kept.
"""

import os
import signal
from pathlib import Path
from typing import Final

from agentbox.core.paths import Paths
from agentbox.plan.supervisord_files import boot_log, supervisord_pid

MAX_BYTES: Final = 8 << 20


def rotated_path(log: Path) -> Path:
    """The path of the earlier file."""
    return log.with_name(f"{log.name}.1")


def rotate(paths: Paths, max_bytes: int = MAX_BYTES) -> bool:
    """Renames a file of at least `max_bytes` and makes supervisord, the parent of this program,
    open a new one; no line is lost. Returns False while the file is smaller, and when supervisord
    does not write it. Raises OSError.
    """
    log, pid_file = boot_log(paths), supervisord_pid(paths)
    if paths.is_container or not log.exists() or log.stat().st_size < max_bytes:
        return False
    if not pid_file.exists() or int(pid_file.read_text()) != os.getppid():
        return False
    log.replace(rotated_path(log))
    os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    os.kill(os.getppid(), signal.SIGUSR2)
    return True
