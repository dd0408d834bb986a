"""bind(2) and listen(2): on loopback, and on no port of the box."""

import errno
import socket
from typing import Final

from agentbox.sandbox.syscalls.addresses import MAX_LENGTH, SocketAddress
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.notification_fd import Notification, NotificationFd
from agentbox.sandbox.syscalls.ports import AgentPorts
from agentbox.sandbox.syscalls.sockets import SocketTable

_CLOSED: Final = 7  # TCP_CLOSE, the first byte of struct tcp_info
MAX_PORTS: Final = 2048  # of the 28,232 ephemeral ports of the box (ip_local_port_range)


class ListenHandler:
    """Servers of an agent. `maximum`: ports that it may have bound at a time. A bound port is not
    available to connecting sockets, so an agent with all of them would cut off the box.
    """

    def __init__(
        self,
        notify_fd: NotificationFd,
        sockets: SocketTable,
        ports: AgentPorts,
        maximum: int = MAX_PORTS,
    ) -> None:
        self._notify_fd, self._sockets, self._ports, self._maximum = (
            notify_fd,
            sockets,
            ports,
            maximum,
        )
        self._used_ports: set[int] = set()  # may include released ports, up to `maximum`

    def bind(self, notification: Notification) -> int:
        """A wildcard means loopback. Raises OSError."""
        address = read_address(self._notify_fd, notification, "bind")
        _, sock = self._sockets.find(notification)
        if address is None:
            raise OSError(errno.EAFNOSUPPORT, "no address")
        if sock is None:
            raise OSError(errno.EINVAL, "the socket is already bound")
        address = address.on_loopback(ipv6_only=is_ipv6_only(sock))
        self._ports.check_bind(address)
        self._check_capacity("bind")
        try:
            sock.bind(address.to_python())
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            self._sockets.clean_up()  # a socket that the agent has closed may have the port
            sock.bind(address.to_python())
        self._used_ports.add(local_port(sock))
        return 0

    def listen(self, notification: Notification) -> int:
        """Starts listening; then the socket belongs to the agent alone, which may connect to it.
        Raises OSError.
        """
        inode, sock = self._sockets.find(notification)
        if sock is None:
            if self._ports.has_listened(inode):
                return 0  # a repeated call, by a child that inherited it; the backlog is unchanged
            raise OSError(errno.EINVAL, "the socket is connected")
        # In this state no unhandled call of the agent changes its address.
        if sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != _CLOSED:
            raise OSError(errno.EINVAL, "the socket is connecting")
        if local_port(sock) == 0:
            self._check_capacity("listen")
            wildcard = SocketAddress(
                sock.family, bytes(4 if sock.family == socket.AF_INET else 16), 0
            )
            sock.bind(wildcard.on_loopback(ipv6_only=is_ipv6_only(sock)).to_python())
        port = local_port(sock)
        self._used_ports.add(port)
        with self._ports.lock(port):
            if self._ports.socket_diag.find_connecting(
                port
            ):  # the waiting client is unknown: the port belonged to another process
                raise OSError(errno.EADDRINUSE, "a client waits for a previous listener")
            sock.listen(max(0, notification.int_argument(1)))
            self._ports.add_listener(sock)
        self._sockets.release(inode)
        return 0

    def _check_capacity(self, rule: str) -> None:
        """Raises DeniedCall at the limit."""
        if len(self._used_ports) >= self._maximum:
            self._sockets.clean_up()
            self._used_ports &= self._ports.socket_diag.used_ports() | self._sockets.ports()
            if len(self._used_ports) >= self._maximum:
                raise DeniedCall(errno.ENOBUFS, rule, f"ports at the limit of {self._maximum}")


def read_address(
    notify_fd: NotificationFd, notification: Notification, rule: str
) -> SocketAddress | None:
    """The address in the second and third argument, copied once. Raises DeniedCall for a family
    other than TCP's.
    """
    size = notification.int_argument(2)
    if not 0 <= size <= MAX_LENGTH:
        raise OSError(errno.EINVAL, "invalid address length")
    try:
        return SocketAddress.parse(
            notify_fd.read_memory(notification, notification.arguments[1], size) if size else b""
        )
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:
            raise DeniedCall(errno.EACCES, rule, str(error.strerror)) from error
        raise


def local_port(sock: socket.socket) -> int:
    """0 while it has none."""
    port: int = sock.getsockname()[1]
    return port


def is_ipv6_only(sock: socket.socket) -> bool:
    """Whether it is an IPv6 socket without IPv4."""
    return sock.family == socket.AF_INET6 and bool(
        sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    )
