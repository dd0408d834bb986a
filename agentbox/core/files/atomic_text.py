"""Writes files of the state directory atomically: a crash or a full disk leaves the old text or the
new one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode


@contextmanager
def wrap_os_errors(action: str) -> Iterator[None]:
    """Turns an OSError into an AgentboxError with the message `cannot <action>: <why>` (exit 3)."""
    try:
        yield
    except OSError as error:
        raise AgentboxError(
            f"cannot {action}: {error.strerror or error}",
            "Free some space or fix the directory's permissions; AGENTBOX_STATE_DIR selects "
            "another directory.",
            exit_code=ExitCode.PREREQUISITE,
        ) from error


def write_atomically(path: Path, text: str | bytes, mode: int = 0o600) -> None:
    """Replaces a file atomically. Raises AgentboxError (exit 3)."""
    temporary = path.with_name(f".{path.name}.new")
    with wrap_os_errors(f"write {path}"):
        try:
            temporary.unlink(missing_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(text if isinstance(text, bytes) else text.encode())
                stream.flush()
                os.fsync(stream.fileno())
            temporary.chmod(mode)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def write_in_place(path: Path, content: bytes) -> None:
    """Overwrites a file in place, because a mount refers to its inode. Space is allocated first, so
    a full disk changes nothing. Raises AgentboxError (exit 3).
    """
    with wrap_os_errors(f"write {path}"), path.open("r+b") as stream:
        if content:
            os.posix_fallocate(stream.fileno(), 0, len(content))
        stream.write(content)
        stream.truncate()
        stream.flush()
        os.fsync(stream.fileno())
