"""The loopback ports of this agent, and locks between agents: while one finds the listener of a
port and connects to it, no other can begin to listen there.
"""

import contextlib
import errno
import fcntl
import socket
from collections.abc import Iterator

from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.syscalls.addresses import SocketAddress
from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.socket_diag import SocketDiag, socket_ids

_MAX_NAMES = 8192  # stored ids of listeners, two of each


class AgentPorts:
    """`locks`: a file shared by all reapers, in which byte n stands for port n."""

    def __init__(self, confinement: Confinement, locks: int) -> None:
        self.socket_diag = SocketDiag()
        self._locks = locks
        self._gateway_port, self._granted = confinement.door, frozenset(confinement.ports or ())
        self._box_ports = frozenset(confinement.closed_ports)
        self._closed_ports = frozenset(
            (*self._box_ports, *confinement.target_ports, confinement.door)
        ) - {0}
        self._listening: dict[int, None] = {}  # ids of the agent's listeners, oldest first

    @contextlib.contextmanager
    def lock(self, port: int) -> Iterator[None]:
        """Keeps other reapers from the port between check and use."""
        fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, port)
        try:
            yield
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, port)

    def is_open_to_all(self, address: SocketAddress) -> bool:
        """The gateway's address, or a port that the policy grants on every address."""
        return (
            address.ipv4 == bytes((127, 0, 0, 1)) and address.port == self._gateway_port != 0
        ) or address.port in self._granted

    def resolve_target(self, address: SocketAddress, *, ipv6_only: bool) -> SocketAddress:
        """The agent's own listener for a connection. Hold the lock. Raises DeniedCall, or OSError
        (ECONNREFUSED) if there is no listener.
        """
        self.check_connect(address)
        owner = self.socket_diag.find_listener(address)
        if (
            not owner and address.ipv4 is None and not ipv6_only
        ):  # a server on `::` is bound to 127.0.0.1
            address = address.mapped_loopback()
            owner = self.socket_diag.find_listener(address)
        if not owner:
            raise ConnectionRefusedError(errno.ECONNREFUSED, str(address))
        if owner not in self._listening:
            raise DeniedCall(errno.EACCES, "connect", str(address))
        return address

    def check_connect(self, address: SocketAddress) -> None:
        """Checks that the address is open to all, or that the agent may have a server there. Raises
        DeniedCall.
        """
        is_local = address.is_loopback or address.is_wildcard
        if not self.is_open_to_all(address.on_loopback(ipv6_only=False)) and (
            address.port in self._closed_ports or not is_local
        ):
            raise DeniedCall(
                errno.EACCES, "connect", str(address), self._signature(address, is_local=is_local)
            )

    def check_bind(self, address: SocketAddress) -> None:
        """Checks that the agent may bind the address. Raises DeniedCall."""
        if address.port in self._closed_ports or not address.is_loopback:
            raise DeniedCall(
                errno.EACCES,
                "bind",
                str(address),
                self._signature(address, is_local=address.is_loopback or address.is_wildcard),
            )

    def _signature(self, address: SocketAddress, *, is_local: bool) -> str:
        """Whether it is a port of the box; that of the gateway is open to agents, though not on
        every address.
        """
        return (
            "box-port"
            if is_local and address.port in self._box_ports and address.port != self._gateway_port
            else ""
        )

    def add_listener(self, sock: socket.socket) -> None:
        """Allows the agent's connections to that socket."""
        for name in socket_ids(sock):
            self._listening[name] = None
        while len(self._listening) > _MAX_NAMES:
            del self._listening[next(iter(self._listening))]

    def has_listened(self, inode: int) -> bool:
        """Whether a socket with that inode has listened, this one or an earlier one."""
        return -inode in self._listening
