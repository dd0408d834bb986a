"""The file that a journal grows in: whole batches or nothing, and no further once a sync has failed."""

import os
import time
from pathlib import Path

from agentbox.core.slot_errors import AdapterError, BackendError


class ActiveFile:
    """At most one file open for appending. `failure` is set for good when it is unknown what is on disk."""

    def __init__(self) -> None:
        self.size = 0
        self.dirty = False
        self.synced = time.monotonic()
        self.failure: AdapterError | None = None
        self._fd = -1

    def open(self, path: Path) -> None:
        """Goes on at the end of that file. Raises OSError."""
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.size = os.fstat(self._fd).st_size

    def close(self) -> None:
        """May be called again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def write(self, data: bytes) -> None:
        """Every byte; on OSError what was written is cut off again."""
        try:
            write_all(self._fd, data)
        except OSError:
            self._truncate()
            raise
        self.size += len(data)
        self.dirty = True

    def sync(self) -> None:
        """Raises OSError. After a failed fdatasync Linux drops the dirty pages, so that a second one would lie."""
        self.dirty = False
        self.synced = time.monotonic()
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            self.failure = journal_failed(f"cannot sync the journal: {error.strerror}")
            raise

    def _truncate(self) -> None:
        try:
            os.ftruncate(self._fd, self.size)
        except OSError as error:
            self.failure = journal_failed(
                f"cannot undo a failed write of the journal: {error.strerror}"
            )
            raise


def write_all(fd: int, data: bytes) -> None:
    """Every byte, or OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def journal_failed(detail: str) -> BackendError:
    """The journal cannot be written."""
    return BackendError(detail, slot="events", impl="local-jsonl")
