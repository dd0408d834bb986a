"""Mode, times, owner and extended attributes of files: the kernel's rules on paths do not cover
them, and a read-only descriptor is enough to change them.

Mode and times can be changed where the agent may write, on a checked descriptor. The owner cannot
be changed; a call that would not change it succeeds, since copying tools make such calls.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Mapping
from typing import Final

from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd
from agentbox.sandbox.syscalls.paths import (
    AT_EMPTY_PATH,
    AT_FDCWD,
    AT_SYMLINK_NOFOLLOW,
    PathResolver,
    descriptor_path,
)

_PATH_FLAGS: Final = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH
_TIMES: Final = struct.Struct("=4q")  # two struct timespec, or two struct timeval
_UTIMBUF: Final = struct.Struct("=2q")
_UNCHANGED: Final = 0xFFFFFFFF  # chown: unchanged

_libc = ctypes.CDLL(None, use_errno=True)


class FileAttributeHandler:
    """Each method handles some calls, and raises OSError with the errno."""

    def __init__(self, notify_fd: NotificationFd, paths: PathResolver) -> None:
        self._notify_fd, self._paths = notify_fd, paths

    def mode(self, notification: Notification) -> int:
        """chmod, fchmod, fchmodat, fchmodat2. Set-user and set-group bits of files are refused."""
        (dir_fd, path, mode), flags = (AT_FDCWD, *notification.arguments[:2]), 0
        if notification.call == "fchmod":
            dir_fd, path = notification.int_argument(0), 0
        elif notification.call != "chmod":
            dir_fd, path, mode = notification.int_argument(0), *notification.arguments[1:3]
        if notification.call == "fchmodat2":
            flags = _check_flags(notification.int_argument(3))
        mode &= 0o7777
        with self._paths.open_path(
            notification, dir_fd, path, flags, by_descriptor=notification.call == "fchmod"
        ) as fd:
            self._check_writable(notification, fd)
            if mode & (stat.S_ISUID | stat.S_ISGID) and not stat.S_ISDIR(os.fstat(fd).st_mode):
                raise DeniedCall(
                    errno.EPERM, notification.call, f"mode {mode:o} of {_display_path(fd)}"
                )
            os.chmod(f"/proc/self/fd/{fd}", mode)  # noqa: PTH101 - few imports
        return 0

    def times(self, notification: Notification) -> int:
        """utime, utimes, futimesat, utimensat. The last two change the descriptor itself if there
        is no path.
        """
        dir_fd, (path, address) = AT_FDCWD, notification.arguments[:2]
        if notification.call in ("futimesat", "utimensat"):
            dir_fd, (path, address) = notification.int_argument(0), notification.arguments[1:3]
        flags = (
            _check_flags(notification.int_argument(3)) if notification.call == "utimensat" else 0
        )
        times = self._read_times(notification, address) if address else None
        by_descriptor = not path and notification.call in ("futimesat", "utimensat")
        with self._paths.open_path(
            notification, dir_fd, path, flags, by_descriptor=by_descriptor
        ) as fd:
            self._check_writable(notification, fd)
            if _libc.utimensat(fd, b"", times, AT_EMPTY_PATH) < 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
        return 0

    def owner(self, notification: Notification) -> int:
        """chown, fchown, lchown, fchownat: succeeds without effect if nothing would change."""
        dir_fd, (path, user, group) = AT_FDCWD, notification.arguments[:3]
        flags = AT_SYMLINK_NOFOLLOW if notification.call == "lchown" else 0
        if notification.call == "fchown":
            dir_fd = notification.int_argument(0)
        elif notification.call == "fchownat":
            dir_fd, (path, user, group), flags = (
                notification.int_argument(0),
                notification.arguments[1:4],
                _check_flags(notification.int_argument(4)),
            )
        user, group = user & _UNCHANGED, group & _UNCHANGED
        with self._paths.open_path(
            notification, dir_fd, path, flags, by_descriptor=notification.call == "fchown"
        ) as fd:
            status = os.fstat(fd)
            if user not in (_UNCHANGED, status.st_uid) or group not in (_UNCHANGED, status.st_gid):
                raise DeniedCall(errno.EPERM, notification.call, _display_path(fd))
        return 0

    def _check_writable(self, notification: Notification, fd: int) -> None:
        if not self._paths.is_writable(fd):
            raise DeniedCall(errno.EPERM, notification.call, _display_path(fd))

    def _read_times(self, notification: Notification, address: int) -> bytes:
        """Two struct timespec."""
        if notification.call == "utime":
            accessed, changed = _UTIMBUF.unpack(
                self._notify_fd.read_exact(notification, address, _UTIMBUF.size)
            )
            return _TIMES.pack(accessed, 0, changed, 0)
        data = self._notify_fd.read_exact(notification, address, _TIMES.size)
        if notification.call == "utimensat":
            return data
        accessed, first, changed, second = _TIMES.unpack(data)
        if not (0 <= first < 1_000_000 and 0 <= second < 1_000_000):
            raise OSError(errno.EINVAL, "microseconds out of range")
        return _TIMES.pack(accessed, first * 1000, changed, second * 1000)


CALLS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), "mode"),
    **dict.fromkeys(("utime", "utimes", "futimesat", "utimensat"), "times"),
    **dict.fromkeys(("chown", "fchown", "lchown", "fchownat"), "owner"),
}
"""The method for each call. Calls on extended attributes have none: they are refused."""


def _check_flags(flags: int) -> int:
    if flags & ~_PATH_FLAGS:
        raise OSError(errno.EINVAL, "invalid flags")
    return flags


def _display_path(descriptor: int) -> str:
    return os.fsdecode(descriptor_path(descriptor)).encode("utf-8", "replace").decode()
