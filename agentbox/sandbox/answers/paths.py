"""From a path in an agent's memory to a descriptor of what it names now, and whether the agent may write there.

What is checked is the descriptor that is used afterwards: a link or folder that changes meanwhile changes nothing. Numbers:
linux/openat2.h, linux/fcntl.h.
"""

import ctypes
import errno
import os
import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from agentbox.sandbox.answers.listener import Listener, Notice
from agentbox.sandbox.landlock import Grant

NOFOLLOW: Final = 0x100  # AT_SYMLINK_NOFOLLOW
EMPTY: Final = 0x1000  # AT_EMPTY_PATH
HERE: Final = -100  # AT_FDCWD
_OPENAT2: Final = 437  # on every architecture
_NO_MAGIC: Final = 0x02  # RESOLVE_NO_MAGICLINKS: /proc/self would be this process's
_LONGEST: Final = 4096  # PATH_MAX
_DESCRIPTOR: Final = re.compile(rb"/proc/(?:self|thread-self)/fd/([0-9]{1,9})")  # how libraries name one of their own

_libc = ctypes.CDLL(None, use_errno=True)


class Paths:
    """`grants` of the agent: those that let it write are where attributes may be changed."""

    def __init__(self, listener: Listener, grants: Iterable[Grant]) -> None:
        self._listener = listener
        # A device is nobody's to change, though all may write to it.
        writable = [
            grant for grant in grants if ("w" in grant.letters and "d" not in grant.letters) or grant.path == "/"
        ]
        self._folders = tuple(
            os.fsencode(os.path.realpath(grant.path)).rstrip(b"/") + b"/" for grant in writable if grant.below
        )
        self._files = frozenset(os.fsencode(os.path.realpath(grant.path)) for grant in writable)

    @contextmanager
    def named(self, notice: Notice, at: int, address: int, flags: int = 0, *, held: bool = False) -> Iterator[int]:
        """An O_PATH descriptor of what the path at `address`, relative to the descriptor `at`, names; of that descriptor
        itself where it is `held` and there is no path. Raises OSError."""
        if held:
            found = _theirs(notice, at)
        else:
            path = self._text(notice, address)
            if not path and not flags & EMPTY:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            found = self._open(notice, at, path, flags)
        try:
            if not self._listener.waits(notice):  # its folder may have been another's
                raise ProcessLookupError(errno.ESRCH, "it is gone")
            yield found
        finally:
            os.close(found)

    def writable(self, descriptor: int) -> bool:
        """Whether it lies where the agent may write, as the kernel names it at this moment."""
        place = place_of(descriptor)
        return place in self._files or (place + b"/").startswith(self._folders)

    def _text(self, notice: Notice, address: int) -> bytes:
        path, end, _ = self._listener.read(notice, address, _LONGEST).partition(b"\0")
        if not end:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        return path

    def _open(self, notice: Notice, at: int, path: bytes, flags: int) -> int:
        if own := _DESCRIPTOR.fullmatch(path):
            return _theirs(notice, int(own[1]))
        if not path:
            return _theirs(notice, at)
        wanted = os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if flags & NOFOLLOW else 0)
        if path.startswith(b"/"):
            return _openat2(HERE, path, wanted)
        folder = _theirs(notice, at)
        try:
            return _openat2(folder, path, wanted)
        finally:
            os.close(folder)


def place_of(descriptor: int) -> bytes:
    """The path of what it is open on."""
    return os.fsencode(os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: PTH115 - few imports


def _theirs(notice: Notice, number: int) -> int:
    """What that descriptor of the thread, or its folder, is open on. Raises OSError."""
    name = "cwd" if number == HERE else f"fd/{number}"
    try:
        return os.open(f"/proc/{notice.pid}/{name}", os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise OSError(errno.EBADF, "no such descriptor") from error


def _openat2(folder: int, path: bytes, flags: int) -> int:
    how = struct.pack("=QQQ", flags, 0, _NO_MAGIC)
    made: int = _libc.syscall(ctypes.c_long(_OPENAT2), ctypes.c_long(folder), path, how, ctypes.c_long(len(how)))
    if made < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return made
