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
from agentbox.sandbox.syscalls.buffers import SocketBuffers, limit_buffers
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd

_TYPE_MASK: Final = 0xF  # SOCK_TYPE_MASK
_FLAGS: Final = socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)
_PROTOCOLS: Final = (0, socket.IPPROTO_TCP)
_PAIR_TYPES: Final = (socket.SOCK_STREAM, socket.SOCK_SEQPACKET)
_NAME_SERVICE_SOCKET: Final = (socket.AF_UNIX, socket.SOCK_STREAM | _FLAGS, 0)
_MAX_NAME_SERVICE_CALLS: Final = 4  # of one process
_MAX_REMEMBERED: Final = 4096  # processes that are remembered
_TWO_INTS: Final = struct.Struct("=2i")
_UNCHECKED_SOCKETS: Final = 64  # kept without a look whether the agent still has them
_MAX_SOCKETS: Final = 256  # at a time: the reaper needs descriptors of its own to do its work


class SocketTable:
    """By inode, which every descriptor of a socket has in common, in whatever process. `unwatch` is told before a
    descriptor is closed."""

    def __init__(
        self, notify_fd: NotificationFd, buffers: SocketBuffers, unwatch: Callable[[int], None]
    ) -> None:
        self._notify_fd, self._buffers, self._unwatch = notify_fd, buffers, unwatch
        self._sockets: dict[int, socket.socket] = {}
        self._clean_up_at = _UNCHECKED_SOCKETS
        self._name_service_calls: dict[int, int] = {}  # sockets of a name service cache, by process

    def make(self, notification: Notification) -> None:
        """socket(2): TCP and nothing else."""
        family, kind, protocol = (notification.int_argument(index) for index in range(3))
        if (
            family not in _FAMILIES
            or kind & _TYPE_MASK != socket.SOCK_STREAM
            or protocol not in _PROTOCOLS
        ):
            detail = f"family {family}, type {kind & _TYPE_MASK}, protocol {protocol}"
            raise DeniedCall(errno.EACCES, "socket", detail, self._signature(notification))
        if len(self._sockets) >= self._clean_up_at:
            self.clean_up()
            self._clean_up_at = min(_MAX_SOCKETS, max(_UNCHECKED_SOCKETS, 2 * len(self._sockets)))
            if len(self._sockets) >= _MAX_SOCKETS:
                raise OSError(errno.EMFILE, "sockets without a peer")
        # For Python it never waits; the flag in the kernel is the agent's.
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK, protocol)
        os.set_blocking(sock.fileno(), not kind & socket.SOCK_NONBLOCK)
        limit_buffers(sock)
        self._notify_fd.send_fd(
            notification, sock.fileno(), cloexec=bool(kind & socket.SOCK_CLOEXEC)
        )
        self._sockets[socket_inode(sock)] = sock

    def _signature(self, notification: Notification) -> str:
        """Of the first few that a process asks for as glibc does for a name service cache."""
        if tuple(notification.int_argument(index) for index in range(3)) != _NAME_SERVICE_SOCKET:
            return ""
        if len(self._name_service_calls) >= _MAX_REMEMBERED:
            self._name_service_calls.clear()
        self._name_service_calls[notification.pid] = (
            self._name_service_calls.get(notification.pid, 0) + 1
        )
        return (
            "unix-stream-nonblock-cloexec"
            if self._name_service_calls[notification.pid] <= _MAX_NAME_SERVICE_CALLS
            else ""
        )

    def pair(self, notification: Notification) -> int:
        """socketpair(2): two ends of Unix that no other socket can be reached from. One of any type but these is a datagram
        socket, which can still be sent to a path."""
        family, kind, protocol = (notification.int_argument(index) for index in range(3))
        if family != socket.AF_UNIX or kind & _TYPE_MASK not in _PAIR_TYPES or protocol:
            raise DeniedCall(
                errno.EACCES,
                "socketpair",
                f"family {family}, type {kind & _TYPE_MASK}, protocol {protocol}",
            )
        if kind & ~(_TYPE_MASK | _FLAGS):
            raise OSError(errno.EINVAL, "flags that no socket has")
        first, second = self._buffers.open_pair(kind & _TYPE_MASK)
        with first, second:
            for sock in (first, second):
                os.set_blocking(sock.fileno(), not kind & socket.SOCK_NONBLOCK)
            cloexec = bool(kind & socket.SOCK_CLOEXEC)
            fds = [
                self._notify_fd.add_fd(notification, one.fileno(), cloexec=cloexec)
                for one in (first, second)
            ]
        self._notify_fd.write_memory(notification, notification.arguments[3], _TWO_INTS.pack(*fds))
        return 0

    def find(self, notification: Notification) -> tuple[int, socket.socket | None]:
        """The inode behind the descriptor in the first argument, and the socket while it has no peer. Raises OSError."""
        try:
            link = os.readlink(f"/proc/{notification.pid}/fd/{notification.int_argument(0)}")  # noqa: PTH115 - few imports
        except FileNotFoundError as error:
            raise OSError(errno.EBADF, "no such descriptor") from error
        if not self._notify_fd.is_waiting(notification):
            raise ProcessLookupError(errno.ESRCH, "it is gone")
        if not link.startswith("socket:["):
            raise OSError(errno.ENOTSOCK, link)
        inode = int(link[8:-1])
        return inode, self._sockets.get(inode)

    def release(self, inode: int) -> None:
        """It has a peer, or listens."""
        if sock := self._sockets.pop(inode, None):
            self._unwatch(
                sock.fileno()
            )  # the agent has the socket still: no poll would forget it by itself
            sock.close()

    def ports(self) -> set[int]:
        """Those that the sockets without a peer have."""
        return {sock.getsockname()[1] for sock in self._sockets.values()}

    def clean_up(self) -> None:
        """Lets go of what no process of the agent has any more; of nothing while one of them shows nobody what it has."""
        members = tree.descendants(tree.scan(), [os.getpid()])
        open_inodes = _open_inodes(members)
        if any(map(tree.is_unreadable, members)):
            return
        for inode in [key for key in self._sockets if key not in open_inodes]:
            self.release(inode)


def socket_inode(sock: socket.socket) -> int:
    """The number that names a socket in all of /proc."""
    return os.fstat(sock.fileno()).st_ino


def is_connected(sock: socket.socket) -> bool:
    """Looks without taking its error away."""
    try:
        sock.getpeername()
    except OSError:
        return False
    return True


def _open_inodes(members: Iterable[tree.Process]) -> set[int]:
    inodes = set()
    for row in members:
        directory = f"/proc/{row.procfs_id}/fd"
        try:
            names = os.listdir(directory)  # noqa: PTH208 - few imports
        except OSError:  # gone
            continue
        for name in names:
            try:
                link = os.readlink(f"{directory}/{name}")  # noqa: PTH115
            except OSError:
                continue
            if link.startswith("socket:["):
                inodes.add(int(link[8:-1]))
    return inodes
