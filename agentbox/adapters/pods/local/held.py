"""Bodies that are replaced or deleted while a backup is made: they are moved to `held/`, by inode,
until it has been staged.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class HeldBodies:
    """Of an open store; thread-safe. What an earlier one left is removed when the store opens."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, exist_ok=True)
        self._descriptor = os.open(directory, _FLAGS)
        self._lock = threading.Lock()
        self._users = 0
        self._remove_all()

    def close(self) -> None:
        os.close(self._descriptor)

    @property
    def active(self) -> bool:
        """Whether bodies are held: then they are given to `take` instead of being removed."""
        return self._users > 0

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Bodies are held during the block, and removed at the end of the last one."""
        with self._lock:
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._remove_all()

    def take(self, dir_fd: int, name: str) -> None:
        """Moves a body here. Raises OSError."""
        inode = os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_ino
        with self._lock:
            if self._users:
                os.rename(name, str(inode), src_dir_fd=dir_fd, dst_dir_fd=self._descriptor)
            else:
                os.unlink(name, dir_fd=dir_fd)

    def open(self, inode: int) -> int | None:
        """A descriptor of a held body; None if it is not here."""
        try:
            return os.open(
                str(inode), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._descriptor
            )
        except FileNotFoundError:
            return None

    def _remove_all(self) -> None:
        for name in os.listdir(self._descriptor):  # noqa: PTH208 - of a descriptor
            os.unlink(name, dir_fd=self._descriptor)
