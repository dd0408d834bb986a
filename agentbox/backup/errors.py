"""Errors of repositories, each with the reason that the event `backup.failed` carries."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode

BUSY: Final = "backup-running"
NO_ROOM: Final = "no-room"
FULL: Final = "full"
READ_ONLY: Final = "read-only"
GONE: Final = "gone"
UNUSABLE: Final = "unusable"
NO_RECIPIENTS: Final = "no-recipients"
IDENTITY: Final = "identity"
PASSWORD: Final = "password"
UNREACHABLE: Final = "unreachable"
NOT_FOUND: Final = "not-found"
DAMAGED: Final = "damaged"
CLOCK: Final = "clock"

_REASONS: Final = {
    errno.ENOSPC: (FULL, "it is full"),
    errno.EDQUOT: (FULL, "its quota is used up"),
    errno.EFBIG: (FULL, "a file cannot be that large there"),
    errno.EROFS: (READ_ONLY, "it is read-only"),
    errno.EACCES: (READ_ONLY, "no permission"),
    errno.EPERM: (READ_ONLY, "no permission"),
    errno.ENOENT: (GONE, "it is gone"),
    errno.ENOTDIR: (GONE, "it is not a folder"),
    errno.ESTALE: (GONE, "it is gone"),
    errno.EIO: (UNUSABLE, "its disk reports an error"),
}


class BackupError(AgentboxError):
    """`reason` is one of the words above. `needed` and `free` are bytes, where room is the reason,
    else 0.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        hint: str = "",
        *,
        exit_code: ExitCode = ExitCode.PREREQUISITE,
        needed: int = 0,
        free: int = 0,
    ) -> None:
        super().__init__(message, hint, exit_code=exit_code)
        self.reason, self.needed, self.free = reason, needed, free


@contextmanager
def repository_errors(action: str) -> Iterator[None]:
    """Turns an OSError of a repository into a BackupError `cannot <action>: <why>` (exit 3)."""
    try:
        yield
    except OSError as error:
        reason, why = _REASONS.get(error.errno or 0, (UNUSABLE, error.strerror or str(error)))
        raise BackupError(
            reason,
            f"cannot {action}: {why}",
            "Earlier snapshots are unchanged. Free room or repair the folder of `backup.folder`, "
            "then run `agentbox backup create`.",
        ) from error


def not_found(snapshot: str) -> BackupError:
    return BackupError(
        NOT_FOUND,
        f"cannot find snapshot {snapshot}: the repository has no such head",
        "`agentbox backup list` shows all snapshots.",
        exit_code=ExitCode.BAD,
    )


def damaged(file: str, why: str) -> BackupError:
    return BackupError(
        DAMAGED,
        f"cannot use {file}: {why}",
        "`agentbox backup verify` names every damaged file. Take another snapshot, or another "
        "copy of the repository.",
        exit_code=ExitCode.BAD,
    )
