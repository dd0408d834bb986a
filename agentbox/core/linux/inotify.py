"""inotify(7) through libc: the standard library has no binding. Standard library only."""

import ctypes
import os
import struct
from pathlib import Path
from typing import Self

from agentbox.core.linux.kernel import checked

_libc = ctypes.CDLL(None, use_errno=True)
_HEADER = struct.Struct("iIII")  # wd, mask, cookie, length of the name
# <sys/inotify.h>
MODIFY, ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = (
    0x2,
    0x4,
    0x8,
    0x40,
    0x80,
    0x100,
    0x200,
)
ANY_CHANGE = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE


class Inotify:
    """Watches directories. The descriptor is readable when there are events. Raises OSError."""

    def __init__(self) -> None:
        self.fd = checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        return self.fd

    def watch(self, directory: Path, mask: int) -> None:
        checked(_libc.inotify_add_watch(self.fd, os.fsencode(directory), mask))

    def read_names(self) -> list[str]:
        """Names in the watched directories with events since the last call. Does not block."""
        names = []
        try:
            data = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return []
        while data:
            _wd, _mask, _cookie, length = _HEADER.unpack_from(data)
            names.append(os.fsdecode(data[_HEADER.size : _HEADER.size + length].rstrip(b"\0")))
            data = data[_HEADER.size + length :]
        return names

    def close(self) -> None:
        os.close(self.fd)
