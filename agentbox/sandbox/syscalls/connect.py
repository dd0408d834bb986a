"""connect(2): to the gateway, to the ports that the policy grants, and to listeners of the agent
itself.

Never answered with "continue", since the address in the agent's memory could change meanwhile. A
call that has to wait for its peer does not block the reaper.
"""

import errno
import os
import signal
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agentbox.sandbox.syscalls.addresses import SocketAddress
from agentbox.sandbox.syscalls.buffers import SocketBuffers
from agentbox.sandbox.syscalls.listen import is_ipv6_only, read_address
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd
from agentbox.sandbox.syscalls.ports import AgentPorts
from agentbox.sandbox.syscalls.sockets import SocketTable, is_connected

POLL_SECONDS: Final = 0.05  # between two checks for interrupted threads
_MAX_SECONDS: Final = 0.2
_TIME: Final = struct.Struct("=qq")  # struct timeval
_AT_ONCE: Final = _TIME.pack(0, 1)
_IN_PROGRESS: Final = (errno.EINPROGRESS, errno.EALREADY, errno.EINTR)


@dataclass(frozen=True)
class _PendingConnect:
    """A thread in a blocking connect. `deadline` is that of the socket's SO_SNDTIMEO; 0
    means none.
    """

    notification: Notification
    address: SocketAddress
    deadline: float


class ConnectHandler:
    """`watch(fd, callback)`: calls `callback` once the descriptor is writable or has failed."""

    def __init__(
        self,
        notify_fd: NotificationFd,
        sockets: SocketTable,
        ports: AgentPorts,
        buffers: SocketBuffers,
        watch: Callable[[int, Callable[[], None]], None],
    ) -> None:
        self._notify_fd, self._sockets, self._ports, self._watch = notify_fd, sockets, ports, watch
        self._buffers = buffers
        self._pending: dict[int, list[_PendingConnect]] = {}  # by inode
        signal.signal(signal.SIGALRM, on_alarm)

    def connect(self, notification: Notification) -> int | None:
        """0, or None for a call that is answered later. Raises OSError."""
        address = read_address(self._notify_fd, notification, "connect")
        if address is not None:
            self._ports.check_connect(address)
        inode, sock = self._sockets.find(notification)
        if sock is None:
            raise OSError(
                errno.EISCONN if address else errno.EOPNOTSUPP, "the socket is connected or listens"
            )
        if address is None:  # AF_UNSPEC: it is not connected
            return 0
        if address.family != sock.family:
            raise OSError(errno.EAFNOSUPPORT, "wrong address family")
        code = self._attempt(inode, sock, address)
        if code in _IN_PROGRESS and sock.fileno() >= 0 and os.get_blocking(sock.fileno()):
            self._add_pending(notification, inode, sock, address)
            return None
        if code:
            raise OSError(code, errno.errorcode.get(code, ""))
        return 0

    def next_poll(self) -> float | None:
        """Seconds until `poll` is due."""
        return POLL_SECONDS if self._pending else None

    def poll(self) -> None:
        """Ends the waits of threads that have a signal, have timed out or have exited."""
        now = time.monotonic()
        for inode, group in list(self._pending.items()):
            for pending in list(group):
                if not self._notify_fd.is_waiting(pending.notification):
                    group.remove(pending)
                elif _has_pending_signal(
                    pending.notification.pid
                ):  # the connection continues without it, as in POSIX
                    self._finish(group, pending, errno.EINTR)
                elif pending.deadline and now >= pending.deadline:
                    self._finish(group, pending, errno.EINPROGRESS)
            if not group:
                del self._pending[inode]

    def _attempt(self, inode: int, sock: socket.socket, address: SocketAddress) -> int:
        """One attempt: its errno, after updating the stored socket."""
        self._buffers.before_connect(inode)
        address = address.on_loopback(ipv6_only=is_ipv6_only(sock))
        if self._ports.is_open_to_all(address):
            code = try_connect(sock, address)
        else:
            with self._ports.lock(address.port):
                code = try_connect(
                    sock, self._ports.resolve_target(address, ipv6_only=is_ipv6_only(sock))
                )
        self._buffers.after_connect(inode, sock, address.port)
        if is_connected(sock):
            self._sockets.release(inode)
        elif code in _IN_PROGRESS:
            self._watch(sock.fileno(), lambda: self._on_ready(inode, sock))
        return code

    def _add_pending(
        self, notification: Notification, inode: int, sock: socket.socket, address: SocketAddress
    ) -> None:
        seconds, micro = _TIME.unpack(
            sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIME.size)
        )
        timeout = seconds + micro / 1e6
        deadline = time.monotonic() + timeout if timeout else 0
        self._pending.setdefault(inode, []).append(_PendingConnect(notification, address, deadline))

    def _on_ready(self, inode: int, sock: socket.socket) -> None:
        """Handles the result of a pending connection."""
        group = self._pending.get(inode)
        if not group:
            if is_connected(sock):
                self._sockets.release(inode)
            return
        try:
            code = self._attempt(inode, sock, group[0].address)
        except OSError as error:
            code = error.errno or errno.ECONNREFUSED
        if code not in _IN_PROGRESS:
            first, *others = self._pending.pop(inode)
            self._notify_fd.reply(first.notification, error=code)
            for other in others:
                self._notify_fd.reply(other.notification, error=code or errno.EISCONN)

    def _finish(self, group: list[_PendingConnect], pending: _PendingConnect, code: int) -> None:
        group.remove(pending)
        self._notify_fd.reply(pending.notification, error=code)


def try_connect(sock: socket.socket, address: SocketAddress) -> int:
    """connect(2) without the wait of a blocking socket: sets the shortest send timeout for the
    call. If a thread of the agent resets it meanwhile, the alarm ends the call.
    """
    original = sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIME.size)
    signal.setitimer(signal.ITIMER_REAL, _MAX_SECONDS)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _AT_ONCE)
    try:
        return sock.connect_ex(address.to_python())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, original)


def on_alarm(*_: object) -> None:
    """A handler, so that the signal interrupts a call."""


def _has_pending_signal(thread: int) -> bool:
    """Whether a signal with a handler is pending for the thread: proc(5), status."""
    masks = {}
    try:
        with open(f"/proc/{thread}/status", "rb") as stream:  # noqa: PTH123 - few imports
            for line in stream:
                name, _, value = line.partition(b":")
                if name in (b"SigPnd", b"ShdPnd", b"SigBlk", b"SigCgt"):
                    masks[name] = int(value, 16)
    except OSError:
        return False
    return bool((masks[b"SigPnd"] | masks[b"ShdPnd"]) & ~masks[b"SigBlk"] & masks[b"SigCgt"])
