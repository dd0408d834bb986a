"""The lock of a state root: commands that change a box share it, an uninstallation has it alone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import wrap_os_errors
from agentbox.host.engines.sudo_user import chown_file

FILE_NAME: Final = "root.lock"


@contextmanager
def root_lock(root: Path, *, exclusive: bool = False) -> Iterator[None]:
    """Raises AgentboxError: exit 7 if the other ones have it, exit 3 if the file cannot be
    written.
    """
    path = root / FILE_NAME
    with wrap_os_errors(f"lock {path}"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        chown_file(path)
    with os.fdopen(descriptor, "r+") as lock:
        try:
            fcntl.flock(lock, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AgentboxError(
                f"cannot lock {root}: another agentbox command is running",
                "Wait until it ends, or stop it.",
                exit_code=ExitCode.BUSY,
            ) from None
        yield
