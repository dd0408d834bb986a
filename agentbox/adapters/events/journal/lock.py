"""The exclusive `flock` of a journal's writer, and the count of readers that need all files."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentbox.adapters.events.journal.descriptor_owner import DescriptorOwner
from agentbox.core.slot_errors import SlotUnavailable


class WriterLock(DescriptorOwner):
    """Held from `acquire` to `close`; the kernel releases it when the process dies."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def acquire(self) -> None:
        """Raises SlotUnavailable with the pid of the holder."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            os.close(fd)
            raise SlotUnavailable(
                f"cannot open the journal: process {holder or 'unknown'} has it open for writing",
                hint="stop the other writer: a journal has only one",
                slot="events",
                impl="local-jsonl",
                since=None,
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd

    @property
    def is_locked(self) -> bool:
        """Whether the lock file at the path is still the locked one."""
        try:
            current, locked = self.path.stat(), os.fstat(self._fd)
        except OSError:
            return False
        return (current.st_dev, current.st_ino) == (locked.st_dev, locked.st_ino)


class ReaderCount:
    """Counts the readers of all files of an open journal. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """No file is removed during the block."""
        with self._lock:
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1

    @contextmanager
    def exclusive(self) -> Iterator[bool]:
        """Yield whether there is no reader; none can start during the block."""
        with self._lock:
            yield self._count == 0
