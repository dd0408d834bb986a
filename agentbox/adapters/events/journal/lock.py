"""One writer a journal: an exclusive `flock` held while it is open. And its files stay while somebody reads them all."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentbox.core.slot_errors import SlotUnavailable


class WriterLock:
    """Held from `take` to `drop`; the kernel drops it when the process dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def acquire(self) -> None:
        """Raises SlotUnavailable with the pid of the holder."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            os.close(fd)
            raise SlotUnavailable(
                f"cannot open the journal: process {holder or 'unknown'} writes to it",
                hint="a journal has one writer",
                slot="events",
                impl="local-jsonl",
                since=None,
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd

    @property
    def is_held(self) -> bool:
        """Whether the lock file at the path is still the one that is locked."""
        try:
            current, locked = self.path.stat(), os.fstat(self._fd)
        except OSError:
            return False
        return (current.st_dev, current.st_ino) == (locked.st_dev, locked.st_ino)

    def release(self) -> None:
        """May be called again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class ReaderCount:
    """Those who read every file of an open journal. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        """No file goes while the body runs."""
        with self._lock:
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1

    @contextmanager
    def exclusive(self) -> Iterator[bool]:
        """Whether nobody reads; nobody begins while the body runs."""
        with self._lock:
            yield self._count == 0
