"""The file that the journal appends to: complete batches only, and none after a failed sync."""

import os
import time
from pathlib import Path

from agentbox.adapters.events.journal.descriptor_owner import DescriptorOwner
from agentbox.core.slot_errors import AdapterError, BackendError


class ActiveFile(DescriptorOwner):
    """At most one file open for appending. `failure` is set permanently once the content on disk is
    unknown."""

    def __init__(self) -> None:
        self.size = 0
        self.dirty = False
        self.synced = time.monotonic()
        self.failure: AdapterError | None = None

    def open(self, path: Path) -> None:
        """Open the file for appending. Raises OSError."""
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.size = os.fstat(self._fd).st_size

    def write(self, data: bytes) -> None:
        """Write all bytes; on OSError the partial write is truncated."""
        try:
            write_all(self._fd, data)
        except OSError:
            self._truncate()
            raise
        self.size += len(data)
        self.dirty = True

    def sync(self) -> None:
        """Raises OSError. Linux drops dirty pages after a failed fdatasync, so a second one would
        wrongly succeed."""
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
    """Write all bytes or raise OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def journal_failed(detail: str) -> BackendError:
    """Return the error for a journal that cannot be written."""
    return BackendError(detail, slot="events", impl="local-jsonl")
