"""From a path in an agent's memory to a descriptor of what it names now, and whether the agent may read or write there.

What is checked is the descriptor that is used afterwards: a link or folder that changes meanwhile changes nothing. Numbers:
linux/openat2.h, linux/fcntl.h.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Final

from agentbox.core.linux.landlock import Grant
from agentbox.core.linux.openat2 import NO_MAGICLINKS, openat2
from agentbox.core.linux.opening import UNBOUNDED, Boundary, Opener
from agentbox.sandbox.syscalls.listener import Listener, Notice

NOFOLLOW: Final = 0x100  # AT_SYMLINK_NOFOLLOW
EMPTY: Final = 0x1000  # AT_EMPTY_PATH
HERE: Final = -100  # AT_FDCWD
_LONGEST: Final = 4096  # PATH_MAX
_DESCRIPTOR: Final = re.compile(rb"/proc/(?:self|thread-self)/fd/([0-9]{1,9})")  # how libraries name one of their own


class Places:
    """Where `grants` lead. They are opened as an agent's rules are, within the same `boundary`."""

    def __init__(self, grants: Iterable[Grant], boundary: Boundary = UNBOUNDED) -> None:
        found: dict[bytes, bool] = {}
        with Opener(boundary) as opener:
            for grant in grants:
                with suppress(OSError):  # it granted nothing either
                    place = os.fsencode(opener.open(grant.path).path)
                    found[place] = found.get(place, False) or grant.below
        self._folders = tuple(place.rstrip(b"/") + b"/" for place, below in found.items() if below)
        self._single = frozenset(found)

    def holds(self, place: bytes) -> bool:
        """Whether what the kernel names so is one of them, or lies below."""
        return place in self._single or self.below(place)

    def below(self, place: bytes) -> bool:
        """Whether it is, or lies in, one that is granted with all below."""
        return (place + b"/").startswith(self._folders)


class Writable(Places):
    """Where they let an agent write: there attributes may be changed."""

    def __init__(self, grants: Iterable[Grant], boundary: Boundary = UNBOUNDED) -> None:
        # A device is nobody's to change, though all may write to it.
        super().__init__(
            (one for one in grants if ("w" in one.letters and "d" not in one.letters) or one.path == "/"), boundary
        )


class Readable:
    """What they let an agent read: files, and the names in folders. Nothing is opened before somebody asks."""

    def __init__(self, grants: tuple[Grant, ...], boundary: Boundary = UNBOUNDED) -> None:
        self._grants, self._boundary = grants, boundary

    @cached_property
    def _files(self) -> Places:
        return Places((one for one in self._grants if "r" in one.letters), self._boundary)

    @cached_property
    def _listed(self) -> Places:
        return Places((one for one in self._grants if "l" in one.letters), self._boundary)

    def holds(self, descriptor: int) -> bool:
        """Of what it is open on, as the kernel names it at this moment. A folder that is granted without what lies in it is not
        listed."""
        place = place_of(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            return self._listed.below(place)
        return self._files.holds(place)


class Paths:
    """Of one agent."""

    def __init__(self, listener: Listener, writable: Writable) -> None:
        self._listener, self._writable = listener, writable

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
        return self._writable.holds(place_of(descriptor))

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
        wanted = os.O_PATH | (os.O_NOFOLLOW if flags & NOFOLLOW else 0)
        if path.startswith(b"/"):
            return openat2(HERE, path, wanted, NO_MAGICLINKS)  # /proc/self would be this process's
        folder = _theirs(notice, at)
        try:
            return openat2(folder, path, wanted, NO_MAGICLINKS)
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
