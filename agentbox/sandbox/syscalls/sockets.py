"""The agent's socket pairs, and its sockets without a peer. The reaper creates each socket and
keeps a second descriptor of it, so that it checks the same socket that it connects, binds or lets
listen.

The reaper closes its descriptor once a socket is connected or listens, so that the agent alone
controls its lifetime.
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
_MAX_NAME_SERVICE_CALLS: Final = 4  # per process
_MAX_REMEMBERED: Final = 4096  # stored processes
_TWO_INTS: Final = struct.Struct("=2i")
_UNCHECKED_SOCKETS: Final = 64  # kept without checking whether the agent still has them
_MAX_SOCKETS: Final = 256  # at a time: the reaper needs descriptors itself


class SocketTable:
    """By inode, which is common to all descriptors of a socket in all processes. `unwatch` is
    called before a descriptor is closed.
    """

    def __init__(
        self, notify_fd: NotificationFd, buffers: SocketBuffers, unwatch: Callable[[int], None]
    ) -> None:
        self._notify_fd, self._buffers, self._unwatch = notify_fd, buffers, unwatch
        self._sockets: dict[int, socket.socket] = {}
        self._clean_up_at = _UNCHECKED_SOCKETS
        # sockets for a name service cache, by process
        self._name_service_calls: dict[int, int] = {}

    def make(self, notification: Notification) -> None:
        """socket(2): TCP only."""
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
                raise OSError(errno.EMFILE, "too many sockets without a peer")
        # Python treats it as non-blocking; the kernel's flag is the one that the agent requested.
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK, protocol)
        os.set_blocking(sock.fileno(), not kind & socket.SOCK_NONBLOCK)
        limit_buffers(sock)
        self._notify_fd.send_fd(
            notification, sock.fileno(), cloexec=bool(kind & socket.SOCK_CLOEXEC)
        )
        self._sockets[socket_inode(sock)] = sock

    def _signature(self, notification: Notification) -> str:
        """Marks the first few sockets of a process that glibc requests for a name service cache."""
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
        """socketpair(2): Unix sockets of types that cannot reach other sockets. All other types are
        datagram sockets, which can send to a path.
        """
        family, kind, protocol = (notification.int_argument(index) for index in range(3))
        if family != socket.AF_UNIX or kind & _TYPE_MASK not in _PAIR_TYPES or protocol:
            raise DeniedCall(
                errno.EACCES,
                "socketpair",
                f"family {family}, type {kind & _TYPE_MASK}, protocol {protocol}",
            )
        if kind & ~(_TYPE_MASK | _FLAGS):
            raise OSError(errno.EINVAL, "invalid flags")
        first, second = self._buffers.open_pair(kind & _TYPE_MASK)
        with first, second:
            for sock in (first, second):
                os.set_blocking(sock.fileno(), not kind & socket.SOCK_NONBLOCK)
            cloexec = bool(kind & socket.SOCK_CLOEXEC)
            fds = [
                self._notify_fd.add_fd(notification, sock.fileno(), cloexec=cloexec)
                for sock in (first, second)
            ]
        self._notify_fd.write_memory(notification, notification.arguments[3], _TWO_INTS.pack(*fds))
        return 0

    def find(self, notification: Notification) -> tuple[int, socket.socket | None]:
        """The inode of the descriptor in the first argument, and the socket if it has no peer.
        Raises OSError.
        """
        try:
            path = f"/proc/{notification.pid}/fd/{notification.int_argument(0)}"
            link = os.readlink(path)  # noqa: PTH115 - few imports
        except FileNotFoundError as error:
            raise OSError(errno.EBADF, "no such descriptor") from error
        if not self._notify_fd.is_waiting(notification):
            raise ProcessLookupError(errno.ESRCH, "the thread has exited")
        if not link.startswith("socket:["):
            raise OSError(errno.ENOTSOCK, link)
        inode = int(link[8:-1])
        return inode, self._sockets.get(inode)

    def release(self, inode: int) -> None:
        """Closes the reaper's descriptor of a socket that is connected or listens."""
        if sock := self._sockets.pop(inode, None):
            self._unwatch(
                sock.fileno()
            )  # the agent still has the socket open, so epoll would keep it
            sock.close()

    def ports(self) -> set[int]:
        """The local ports of the sockets without a peer."""
        return {sock.getsockname()[1] for sock in self._sockets.values()}

    def clean_up(self) -> None:
        """Releases the sockets that the agent has closed; none while one of its processes is
        unreadable.
        """
        members = tree.descendants(tree.scan(), [os.getpid()])
        open_inodes = _open_inodes(members)
        if any(map(tree.is_unreadable, members)):
            return
        for inode in [key for key in self._sockets if key not in open_inodes]:
            self.release(inode)


def socket_inode(sock: socket.socket) -> int:
    """The number that identifies a socket in /proc."""
    return os.fstat(sock.fileno()).st_ino


def is_connected(sock: socket.socket) -> bool:
    """Does not clear a pending error."""
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
        except OSError:  # exited
            continue
        for name in names:
            try:
                link = os.readlink(f"{directory}/{name}")  # noqa: PTH115
            except OSError:
                continue
            if link.startswith("socket:["):
                inodes.add(int(link[8:-1]))
    return inodes
