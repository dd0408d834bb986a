"""bind(2) and listen(2): on loopback, at no port of the box's own."""

import errno
import socket
from typing import Final

from agentbox.sandbox.syscalls.addresses import LONGEST, Place
from agentbox.sandbox.syscalls.denials import Denied
from agentbox.sandbox.syscalls.listener import Listener, Notice
from agentbox.sandbox.syscalls.ports import Ports
from agentbox.sandbox.syscalls.sockets import Sockets

_CLOSED: Final = 7  # TCP_CLOSE, the first byte of struct tcp_info
MOST_PORTS: Final = (
    2048  # of 28,232 that the kernel gives to whoever connects, anywhere in this box (ip_local_port_range)
)


class Listening:
    """Servers of an agent's own. `most`: ports that it may have taken at a time. A port that somebody has bound is given to
    nobody who connects, so with all of them one agent would cut off the box."""

    def __init__(self, listener: Listener, sockets: Sockets, ports: Ports, most: int = MOST_PORTS) -> None:
        self._listener, self._sockets, self._ports, self._most = listener, sockets, ports, most
        self._taken: set[int] = set()  # and, up to `most`, those it had

    def bind(self, notice: Notice) -> int:
        """A wildcard means loopback. Raises OSError."""
        place = address_of(self._listener, notice, "bind")
        _, one = self._sockets.find(notice)
        if place is None:
            raise OSError(errno.EAFNOSUPPORT, "no address")
        if one is None:
            raise OSError(errno.EINVAL, "it has an address")
        place = place.on_loopback(v6_alone=v6_alone(one))
        self._ports.check_own(place)
        self._check_room("bind")
        try:
            one.bind(place.python())
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            self._sockets.tidy()  # one that the agent has closed may have had it
            one.bind(place.python())
        self._taken.add(own_port(one))
        return 0

    def listen(self, notice: Notice) -> int:
        """Once it listens it is the agent's alone, and connections of this agent may meet it. Raises OSError."""
        inode, one = self._sockets.find(notice)
        if one is None:
            if self._ports.has_listened(inode):
                return 0  # again, by a child that inherited it; the length of its queue stays
            raise OSError(errno.EINVAL, "it is connected")
        # In this state nothing that the agent may do without being asked about changes its address.
        if one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != _CLOSED:
            raise OSError(errno.EINVAL, "it is connecting")
        if own_port(one) == 0:
            self._check_room("listen")
            wild = Place(one.family, bytes(4 if one.family == socket.AF_INET else 16), 0)
            one.bind(wild.on_loopback(v6_alone=v6_alone(one)).python())
        port = own_port(one)
        self._taken.add(port)
        with self._ports.held(port):
            if self._ports.tables.awaited(port):  # by whom, nobody can tell: it was another's port until now
                raise OSError(errno.EADDRINUSE, "somebody waits for an earlier listener there")
            one.listen(max(0, notice.low(1)))
            self._ports.listens(one)
        self._sockets.let_go(inode)
        return 0

    def _check_room(self, rule: str) -> None:
        """Raises Denied at the limit."""
        if len(self._taken) >= self._most:
            self._sockets.tidy()
            self._taken &= self._ports.tables.taken() | self._sockets.ports()
            if len(self._taken) >= self._most:
                raise Denied(errno.ENOBUFS, rule, f"ports at the limit of {self._most}")


def address_of(listener: Listener, notice: Notice, rule: str) -> Place | None:
    """The address in the second and third argument, copied once. Raises Denied for a family that is not TCP's."""
    size = notice.low(2)
    if not 0 <= size <= LONGEST:
        raise OSError(errno.EINVAL, "a length that no address has")
    try:
        return Place.parse(listener.read(notice, notice.arguments[1], size) if size else b"")
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:
            raise Denied(errno.EACCES, rule, str(error.strerror)) from error
        raise


def own_port(one: socket.socket) -> int:
    """0 while it has none."""
    found: int = one.getsockname()[1]
    return found


def v6_alone(one: socket.socket) -> bool:
    """Whether it is one of IPv6 that does not speak IPv4."""
    return one.family == socket.AF_INET6 and bool(one.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))
