"""The agent's pairs of sockets, and its sockets that have no peer yet. The reaper makes each and keeps a second descriptor of it, so that what it
looks at and what it connects, binds or lets listen is one and the same.

It lets go as soon as a socket is connected or listens: from then on only the agent's closing counts.
"""

import errno
import os
import socket
import struct
from collections.abc import Callable, Iterable
from typing import Final

from agentbox.sandbox.launcher import tree
from agentbox.sandbox.syscalls.buffers import Buffers, bounded
from agentbox.sandbox.syscalls.denials import Denied
from agentbox.sandbox.syscalls.listener import Listener, Notice

_KIND: Final = 0xF  # SOCK_TYPE_MASK
_FLAGS: Final = socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)
_PROTOCOLS: Final = (0, socket.IPPROTO_TCP)
_OF_A_PAIR: Final = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
_OF_A_NAME_SERVICE: Final = (socket.AF_UNIX, socket.SOCK_STREAM | _FLAGS, 0)
_FEW_ASKED: Final = 4  # of one process
_MOST_ASKED: Final = 4096  # processes that are remembered
_TWO: Final = struct.Struct("=2i")
_FEW: Final = 64  # kept without a look whether the agent still has them
_MOST: Final = 256  # at a time: the reaper needs descriptors of its own to do its work


class Sockets:
    """By inode, which every descriptor of a socket has in common, in whatever process. `unwatch` is told before a
    descriptor is closed."""

    def __init__(self, listener: Listener, buffers: Buffers, unwatch: Callable[[int], None]) -> None:
        self._listener, self._buffers, self._unwatch = listener, buffers, unwatch
        self._kept: dict[int, socket.socket] = {}
        self._many = _FEW
        self._asked: dict[int, int] = {}  # sockets of a name service cache, by process

    def make(self, notice: Notice) -> None:
        """socket(2): TCP and nothing else."""
        family, kind, protocol = (notice.low(index) for index in range(3))
        if family not in _FAMILIES or kind & _KIND != socket.SOCK_STREAM or protocol not in _PROTOCOLS:
            said = f"family {family}, type {kind & _KIND}, protocol {protocol}"
            raise Denied(errno.EACCES, "socket", said, self._signature(notice))
        if len(self._kept) >= self._many:
            self.tidy()
            self._many = min(_MOST, max(_FEW, 2 * len(self._kept)))
            if len(self._kept) >= _MOST:
                raise OSError(errno.EMFILE, "sockets without a peer")
        # For Python it never waits; the flag in the kernel is the agent's.
        made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK, protocol)
        os.set_blocking(made.fileno(), not kind & socket.SOCK_NONBLOCK)
        bounded(made)
        self._listener.give(notice, made.fileno(), cloexec=bool(kind & socket.SOCK_CLOEXEC))
        self._kept[inode_of(made)] = made

    def _signature(self, notice: Notice) -> str:
        """Of the first few that a process asks for as glibc does for a name service cache."""
        if tuple(notice.low(index) for index in range(3)) != _OF_A_NAME_SERVICE:
            return ""
        if len(self._asked) >= _MOST_ASKED:
            self._asked.clear()
        self._asked[notice.pid] = self._asked.get(notice.pid, 0) + 1
        return "unix-stream-nonblock-cloexec" if self._asked[notice.pid] <= _FEW_ASKED else ""

    def pair(self, notice: Notice) -> int:
        """socketpair(2): two ends of Unix that no other socket can be reached from. One of any type but these is a datagram
        socket, which can still be sent to a path."""
        family, kind, protocol = (notice.low(index) for index in range(3))
        if family != socket.AF_UNIX or kind & _KIND not in _OF_A_PAIR or protocol:
            raise Denied(errno.EACCES, "socketpair", f"family {family}, type {kind & _KIND}, protocol {protocol}")
        if kind & ~(_KIND | _FLAGS):
            raise OSError(errno.EINVAL, "flags that no socket has")
        near, far = self._buffers.pair(kind & _KIND)
        with near, far:
            for one in (near, far):
                os.set_blocking(one.fileno(), not kind & socket.SOCK_NONBLOCK)
            cloexec = bool(kind & socket.SOCK_CLOEXEC)
            given = [self._listener.add(notice, one.fileno(), cloexec=cloexec) for one in (near, far)]
        self._listener.write(notice, notice.arguments[3], _TWO.pack(*given))
        return 0

    def find(self, notice: Notice) -> tuple[int, socket.socket | None]:
        """The inode behind the descriptor in the first argument, and the socket while it has no peer. Raises OSError."""
        try:
            link = os.readlink(f"/proc/{notice.pid}/fd/{notice.low(0)}")  # noqa: PTH115 - few imports
        except FileNotFoundError as error:
            raise OSError(errno.EBADF, "no such descriptor") from error
        if not self._listener.waits(notice):
            raise ProcessLookupError(errno.ESRCH, "it is gone")
        if not link.startswith("socket:["):
            raise OSError(errno.ENOTSOCK, link)
        inode = int(link[8:-1])
        return inode, self._kept.get(inode)

    def let_go(self, inode: int) -> None:
        """It has a peer, or listens."""
        if kept := self._kept.pop(inode, None):
            self._unwatch(kept.fileno())  # the agent has the socket still: no poll would forget it by itself
            kept.close()

    def ports(self) -> set[int]:
        """Those that the sockets without a peer have."""
        return {one.getsockname()[1] for one in self._kept.values()}

    def tidy(self) -> None:
        """Lets go of what no process of the agent has any more; of nothing while one of them shows nobody what it has."""
        members = tree.descendants(tree.scan(), [os.getpid()])
        open_still = _inodes(members)
        if any(map(tree.hides, members)):
            return
        for inode in [one for one in self._kept if one not in open_still]:
            self.let_go(inode)


def inode_of(one: socket.socket) -> int:
    """The number that names a socket in all of /proc."""
    return os.fstat(one.fileno()).st_ino


def connected(one: socket.socket) -> bool:
    """Looks without taking its error away."""
    try:
        one.getpeername()
    except OSError:
        return False
    return True


def _inodes(members: Iterable[tree.Process]) -> set[int]:
    found = set()
    for row in members:
        folder = f"/proc/{row.shown}/fd"
        try:
            names = os.listdir(folder)  # noqa: PTH208 - few imports
        except OSError:  # gone
            continue
        for name in names:
            try:
                link = os.readlink(f"{folder}/{name}")  # noqa: PTH115
            except OSError:
                continue
            if link.startswith("socket:["):
                found.add(int(link[8:-1]))
    return found
