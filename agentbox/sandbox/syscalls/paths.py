"""Opens a path in an agent's memory, and checks whether the agent may read or write there.

The checked descriptor is the one that is used afterwards, so a link or directory that changes
meanwhile has no effect. Numbers: linux/openat2.h, linux/fcntl.h.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Final

from agentbox.core.linux.landlock import PathRule
from agentbox.core.linux.openat2 import NO_MAGICLINKS, openat2
from agentbox.core.linux.path_opener import UNBOUNDED, Boundary, Opener
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd

AT_SYMLINK_NOFOLLOW: Final = 0x100  # AT_SYMLINK_NOFOLLOW
AT_EMPTY_PATH: Final = 0x1000  # AT_EMPTY_PATH
AT_FDCWD: Final = -100  # AT_FDCWD
_PATH_MAX: Final = 4096  # PATH_MAX
_FD_PATH: Final = re.compile(
    rb"/proc/(?:self|thread-self)/fd/([0-9]{1,9})"
)  # how libraries name their own descriptors


class GrantedPaths:
    """The targets of `grants`, opened like an agent's rules, within the same `boundary`."""

    def __init__(self, grants: Iterable[PathRule], boundary: Boundary = UNBOUNDED) -> None:
        paths: dict[bytes, bool] = {}
        with Opener(boundary) as opener:
            for grant in grants:
                with suppress(OSError):  # Landlock granted nothing either
                    path = os.fsencode(opener.open(grant.path).path)
                    paths[path] = paths.get(path, False) or grant.recursive
        self._directories = tuple(
            path.rstrip(b"/") + b"/" for path, below in paths.items() if below
        )
        self._exact = frozenset(paths)

    def contains(self, path: bytes) -> bool:
        """Whether the path is granted, or lies below a granted directory."""
        return path in self._exact or self.is_below(path)

    def is_below(self, path: bytes) -> bool:
        """Whether the path is, or lies in, a directory that is granted with its contents."""
        return (path + b"/").startswith(self._directories)


class WritablePaths(GrantedPaths):
    """Where an agent may write, and so change attributes."""

    def __init__(self, grants: Iterable[PathRule], boundary: Boundary = UNBOUNDED) -> None:
        # Attributes of a device may not be changed, though all may write to it.
        super().__init__(
            (
                grant
                for grant in grants
                if ("w" in grant.letters and "d" not in grant.letters) or grant.path == "/"
            ),
            boundary,
        )


class ReadablePaths:
    """What an agent may read: files, and names in directories. Opens grants on first use."""

    def __init__(self, grants: tuple[PathRule, ...], boundary: Boundary = UNBOUNDED) -> None:
        self._grants, self._boundary = grants, boundary

    @cached_property
    def _files(self) -> GrantedPaths:
        return GrantedPaths(
            (grant for grant in self._grants if "r" in grant.letters), self._boundary
        )

    @cached_property
    def _listable(self) -> GrantedPaths:
        return GrantedPaths(
            (grant for grant in self._grants if "l" in grant.letters), self._boundary
        )

    def contains(self, descriptor: int) -> bool:
        """Whether the target of the descriptor, by its current name, may be read. A directory
        granted without its contents may not be listed.
        """
        path = descriptor_path(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            return self._listable.is_below(path)
        return self._files.contains(path)


class PathResolver:
    """Resolves the paths of one agent."""

    def __init__(self, notify_fd: NotificationFd, writable: WritablePaths) -> None:
        self._notify_fd, self._writable = notify_fd, writable

    @contextmanager
    def open_path(
        self,
        notification: Notification,
        dir_fd: int,
        address: int,
        flags: int = 0,
        *,
        by_descriptor: bool = False,
    ) -> Iterator[int]:
        """An O_PATH descriptor of the path at `address`, relative to the descriptor `dir_fd`; of
        that descriptor itself if `by_descriptor`. Raises OSError.
        """
        if by_descriptor:
            fd = _open_theirs(notification, dir_fd)
        else:
            path = self._read_path(notification, address)
            if not path and not flags & AT_EMPTY_PATH:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            fd = self._open(notification, dir_fd, path, flags)
        try:
            if not self._notify_fd.is_waiting(notification):  # the thread id may have been reused
                raise ProcessLookupError(errno.ESRCH, "the thread has exited")
            yield fd
        finally:
            os.close(fd)

    def is_writable(self, descriptor: int) -> bool:
        """Whether the agent may write to the target of the descriptor, by its current name."""
        return self._writable.contains(descriptor_path(descriptor))

    def _read_path(self, notification: Notification, address: int) -> bytes:
        path, end, _ = self._notify_fd.read_memory(notification, address, _PATH_MAX).partition(
            b"\0"
        )
        if not end:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        return path

    def _open(self, notification: Notification, dir_fd: int, path: bytes, flags: int) -> int:
        if match := _FD_PATH.fullmatch(path):
            return _open_theirs(notification, int(match[1]))
        if not path:
            return _open_theirs(notification, dir_fd)
        open_flags = os.O_PATH | (os.O_NOFOLLOW if flags & AT_SYMLINK_NOFOLLOW else 0)
        if path.startswith(b"/"):
            return openat2(
                AT_FDCWD, path, open_flags, NO_MAGICLINKS
            )  # /proc/self would be this process
        directory_fd = _open_theirs(notification, dir_fd)
        try:
            return openat2(directory_fd, path, open_flags, NO_MAGICLINKS)
        finally:
            os.close(directory_fd)


def descriptor_path(descriptor: int) -> bytes:
    """The path of its target."""
    return os.fsencode(os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: PTH115 - few imports


def _open_theirs(notification: Notification, number: int) -> int:
    """Opens the target of the thread's descriptor, or its working directory. Raises OSError."""
    name = "cwd" if number == AT_FDCWD else f"fd/{number}"
    try:
        return os.open(f"/proc/{notification.pid}/{name}", os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise OSError(errno.EBADF, "no such descriptor") from error
