"""Limits the kernel's socket buffers of an agent: memory of no process, which no scan of processes
finds.

Each buffer's size is set when its socket is created and cannot be changed, so a number of sockets
is a number of bytes; the limit is a quarter of the agent's memory. The stored value is an upper
bound: each socket adds to it, and closing is not seen. The sockets are counted only when the bound
reaches the limit.
"""

import errno
import os
import socket
from collections import Counter
from typing import Final

from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.socket_diag import ConnectionEnds, SocketDiag, connection_ends

BUFFER_SIZE: Final = 128 << 10  # requested; the kernel doubles it for its overhead per message
CONNECTION_BYTES: Final = 1 << 20  # maximum bytes of both ends: two buffers each
END_BYTES: Final = (
    320 << 10
)  # maximum bytes of one end of a pair: its buffer, and the message that exceeds its size
_PAIR_SIZE: Final = 104 << 10  # requested: the kernel's default
_SHARE: Final = 4


class SocketBuffers:
    """The buffers of one agent with `memory` bytes; 0 means no limit."""

    def __init__(self, memory: int) -> None:
        self._maximum = memory // _SHARE
        self._ends: set[int] = set()
        self._connections: dict[int, ConnectionEnds] = {}  # by inode of the connecting end

    def open_pair(self, kind: int) -> tuple[socket.socket, socket.socket]:
        """A connected pair of sockets. Raises DeniedCall at the limit, and OSError."""
        self.check(2 * END_BYTES)
        first, second = socket.socketpair(socket.AF_UNIX, kind)
        for sock in (first, second):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _PAIR_SIZE)
            self._ends.add(os.fstat(sock.fileno()).st_ino)
        return first, second

    def before_connect(self, inode: int) -> None:
        """Checks the limit for a socket that is about to connect. Raises DeniedCall."""
        if inode not in self._connections:
            self.check(CONNECTION_BYTES)

    def after_connect(self, inode: int, sock: socket.socket, port: int) -> None:
        """Records an attempt to connect to `port`, after which the socket has a local port."""
        if local_port := sock.getsockname()[1]:
            self._connections[inode] = connection_ends(local_port, port)

    def check(self, needed: int) -> None:
        """Checks that so many more bytes are allowed. Raises DeniedCall at the limit."""
        if self._maximum and self._total() + needed > self._maximum:
            self._ends &= SocketDiag.unix_inodes()
            counts = SocketDiag.count_connections()
            self._connections = {
                inode: pair for inode, pair in self._connections.items() if _consume(counts, pair)
            }
            if self._total() + needed > self._maximum:
                raise DeniedCall(
                    errno.ENOBUFS, "sockets", f"buffers at the limit of {self._maximum} bytes"
                )

    def _total(self) -> int:
        return len(self._ends) * END_BYTES + len(self._connections) * CONNECTION_BYTES


def _consume(counts: Counter[ConnectionEnds], connection: ConnectionEnds) -> bool:
    counts[connection] -= 1
    return counts[connection] >= 0


def limit_buffers(sock: socket.socket) -> None:
    """Sets the buffer sizes of a TCP socket, which accepted sockets inherit."""
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, BUFFER_SIZE)
