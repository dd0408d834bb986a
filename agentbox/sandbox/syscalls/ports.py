"""Which ports of loopback are this agent's, and the order between agents: while one looks who listens at a port and
connects to it, no other can begin to listen there.
"""

import contextlib
import errno
import fcntl
import socket
from collections.abc import Iterator

from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.syscalls.addresses import Place
from agentbox.sandbox.syscalls.denials import Denied
from agentbox.sandbox.syscalls.tables import Tables, names_of

_MOST = 8192  # names of listeners remembered, two of each


class Ports:
    """`locks`: a file that all reapers have, of which byte n stands for port n."""

    def __init__(self, confinement: Confinement, locks: int) -> None:
        self.tables = Tables()
        self._locks = locks
        self._door, self._granted = confinement.door, frozenset(confinement.ports or ())
        self._box = frozenset(confinement.closed_ports)
        self._closed = frozenset((*self._box, *confinement.target_ports, confinement.door)) - {0}
        self._listening: dict[int, None] = {}  # names of the agent's own, oldest first

    @contextlib.contextmanager
    def held(self, port: int) -> Iterator[None]:
        """Nobody else is between look and deed at that port."""
        fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, port)
        try:
            yield
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, port)

    def open_to_all(self, place: Place) -> bool:
        """The gateway's address, or a port that the policy grants on every address."""
        return (place.v4 == bytes((127, 0, 0, 1)) and place.port == self._door != 0) or place.port in self._granted

    def aim(self, place: Place, *, v6_alone: bool) -> Place:
        """Where a connection may go: to a listener of the agent's own. Hold the port. Raises Denied, or OSError
        (ECONNREFUSED) where nobody listens."""
        self.check_near(place)
        owner = self.tables.listener(place)
        if not owner and place.v4 is None and not v6_alone:  # a server on `::` is on 127.0.0.1 here
            place = place.mapped()
            owner = self.tables.listener(place)
        if not owner:
            raise ConnectionRefusedError(errno.ECONNREFUSED, str(place))
        if owner not in self._listening:
            raise Denied(errno.EACCES, "connect", str(place))
        return place

    def check_near(self, place: Place) -> None:
        """Whether it is open to all, or a place where the agent may have a server. Raises Denied."""
        near = place.loopback or place.wild
        if not self.open_to_all(place.on_loopback(v6_alone=False)) and (place.port in self._closed or not near):
            raise Denied(errno.EACCES, "connect", str(place), self._signature(place, near=near))

    def check_own(self, place: Place) -> None:
        """Whether the agent may have that address. Raises Denied."""
        if place.port in self._closed or not place.loopback:
            raise Denied(errno.EACCES, "bind", str(place), self._signature(place, near=place.loopback or place.wild))

    def _signature(self, place: Place, *, near: bool) -> str:
        """Whether it is a port of the box's own; that of the door is for agents, if not on every address."""
        return "box-port" if near and place.port in self._box and place.port != self._door else ""

    def listens(self, one: socket.socket) -> None:
        """From now on a connection to it is a connection within the agent."""
        for name in names_of(one):
            self._listening[name] = None
        while len(self._listening) > _MOST:
            del self._listening[next(iter(self._listening))]

    def has_listened(self, inode: int) -> bool:
        """Whether a socket of that number did, this one or an earlier."""
        return -inode in self._listening
