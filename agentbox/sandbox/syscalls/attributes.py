"""Mode, times, owner and extended attributes of files: the kernel's rules on paths say nothing of them, and a descriptor
that only reads is enough to change them.

Mode and times change where the agent may write, on a descriptor that was checked. The owner stays; a call that would not
change it succeeds, since copying tools make such calls.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Mapping
from typing import Final

from agentbox.sandbox.syscalls.denials import Denied
from agentbox.sandbox.syscalls.listener import Listener, Notice
from agentbox.sandbox.syscalls.paths import EMPTY, HERE, NOFOLLOW, Paths, place_of

_AT_PATH: Final = NOFOLLOW | EMPTY
_TIMES: Final = struct.Struct("=4q")  # two struct timespec, or two struct timeval
_UTIMBUF: Final = struct.Struct("=2q")
_SAME: Final = 0xFFFFFFFF  # of chown: leave it

_libc = ctypes.CDLL(None, use_errno=True)


class Attributes:
    """Each method answers some calls, and raises OSError for the errno."""

    def __init__(self, listener: Listener, paths: Paths) -> None:
        self._listener, self._paths = listener, paths

    def mode(self, notice: Notice) -> int:
        """chmod, fchmod, fchmodat, fchmodat2. Nothing that runs as its owner is made of a file."""
        (at, path, mode), flags = (HERE, *notice.arguments[:2]), 0
        if notice.call == "fchmod":
            at, path = notice.low(0), 0
        elif notice.call != "chmod":
            at, path, mode = notice.low(0), *notice.arguments[1:3]
        if notice.call == "fchmodat2":
            flags = _checked(notice.low(3))
        mode &= 0o7777
        with self._paths.named(notice, at, path, flags, held=notice.call == "fchmod") as found:
            self._check(notice, found)
            if mode & (stat.S_ISUID | stat.S_ISGID) and not stat.S_ISDIR(os.fstat(found).st_mode):
                raise Denied(errno.EPERM, notice.call, f"mode {mode:o} of {_shown(found)}")
            os.chmod(f"/proc/self/fd/{found}", mode)  # noqa: PTH101 - few imports
        return 0

    def times(self, notice: Notice) -> int:
        """utime, utimes, futimesat, utimensat. The last two change the descriptor itself where there is no path."""
        at, (path, address) = HERE, notice.arguments[:2]
        if notice.call in ("futimesat", "utimensat"):
            at, (path, address) = notice.low(0), notice.arguments[1:3]
        flags = _checked(notice.low(3)) if notice.call == "utimensat" else 0
        times = self._times(notice, address) if address else None
        held = not path and notice.call in ("futimesat", "utimensat")
        with self._paths.named(notice, at, path, flags, held=held) as found:
            self._check(notice, found)
            if _libc.utimensat(found, b"", times, EMPTY) < 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
        return 0

    def owner(self, notice: Notice) -> int:
        """chown, fchown, lchown, fchownat: succeeds where it would change nothing, and does nothing."""
        at, (path, user, group) = HERE, notice.arguments[:3]
        flags = NOFOLLOW if notice.call == "lchown" else 0
        if notice.call == "fchown":
            at = notice.low(0)
        elif notice.call == "fchownat":
            at, (path, user, group), flags = notice.low(0), notice.arguments[1:4], _checked(notice.low(4))
        user, group = user & _SAME, group & _SAME
        with self._paths.named(notice, at, path, flags, held=notice.call == "fchown") as found:
            now = os.fstat(found)
            if user not in (_SAME, now.st_uid) or group not in (_SAME, now.st_gid):
                raise Denied(errno.EPERM, notice.call, _shown(found))
        return 0

    def _check(self, notice: Notice, found: int) -> None:
        if not self._paths.writable(found):
            raise Denied(errno.EPERM, notice.call, _shown(found))

    def _times(self, notice: Notice, address: int) -> bytes:
        """Two struct timespec."""
        if notice.call == "utime":
            accessed, changed = _UTIMBUF.unpack(self._listener.read_whole(notice, address, _UTIMBUF.size))
            return _TIMES.pack(accessed, 0, changed, 0)
        data = self._listener.read_whole(notice, address, _TIMES.size)
        if notice.call == "utimensat":
            return data
        accessed, first, changed, second = _TIMES.unpack(data)
        if not (0 <= first < 1_000_000 and 0 <= second < 1_000_000):
            raise OSError(errno.EINVAL, "more than a second of microseconds")
        return _TIMES.pack(accessed, first * 1000, changed, second * 1000)


CALLS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), "mode"),
    **dict.fromkeys(("utime", "utimes", "futimesat", "utimensat"), "times"),
    **dict.fromkeys(("chown", "fchown", "lchown", "fchownat"), "owner"),
}
"""By which method a call is answered. Extended attributes have none: they are refused."""


def _checked(flags: int) -> int:
    if flags & ~_AT_PATH:
        raise OSError(errno.EINVAL, "flags that no such call has")
    return flags


def _shown(descriptor: int) -> str:
    return os.fsdecode(place_of(descriptor)).encode("utf-8", "replace").decode()
