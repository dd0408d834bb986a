"""Locks between all users of a store, across threads and processes: byte ranges of one file (open
file description locks).

Byte `hash(path)` is locked while the object at that path changes. Each open instance locks one byte
above them, so that others can detect unfinished changes of dead instances.
"""

import errno
import fcntl
import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_INSTANCES = 1 << 32  # offsets from here on belong to instances
_FLOCK = "hhqqi"  # struct flock of Linux on 64-bit machines: type, whence, start, length, pid


class PathLocks:
    """The lock file of a store. Each lock has its own descriptor, to exclude threads too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.instance = int.from_bytes(os.urandom(4), "big") >> 1
        self._instance_fd = self._open()
        _set_lock(self._instance_fd, fcntl.F_WRLCK, _INSTANCES + self.instance, wait=False)

    def close(self) -> None:
        os.close(self._instance_fd)

    @contextmanager
    def hold(self, path: str) -> Iterator[None]:
        """Hold the lock of a path during the block."""
        offset = int.from_bytes(hashlib.blake2b(path.encode(), digest_size=4).digest(), "big")
        descriptor = self._open()
        try:
            _set_lock(descriptor, fcntl.F_WRLCK, offset, wait=True)
            yield
        finally:
            os.close(descriptor)

    def is_alive(self, instance: int) -> bool:
        """Return whether the instance, of any process, is still open."""
        if instance == self.instance:
            return True
        descriptor = self._open()
        try:
            _set_lock(descriptor, fcntl.F_WRLCK, _INSTANCES + instance, wait=False)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return True
            raise
        finally:
            os.close(descriptor)
        return False

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _set_lock(descriptor: int, kind: int, offset: int, *, wait: bool) -> None:
    command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
    fcntl.fcntl(descriptor, command, struct.pack(_FLOCK, kind, os.SEEK_SET, offset, 1, 0))
