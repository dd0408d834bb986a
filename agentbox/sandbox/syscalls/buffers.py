"""What sockets of an agent may keep in the kernel's buffers: memory of no process, so no look at processes finds it.

The size of each buffer is set when its socket is made, and nobody changes it; so a number of sockets is a number of bytes, and
may be as much as a quarter of the agent's memory. What is kept is an upper bound: each socket adds, and no end is seen. Only
where that bound meets the most are they counted anew.
"""

import errno
import os
import socket
from collections import Counter
from typing import Final

from agentbox.sandbox.syscalls.denials import DeniedCall
from agentbox.sandbox.syscalls.socket_diag import ConnectionEnds, SocketDiag, connection_ends

BUFFER_SIZE: Final = (
    128 << 10
)  # asked for; the kernel doubles it, for what it keeps of each message besides
CONNECTION_BYTES: Final = 1 << 20  # bytes that both ends of one hold at most: two buffers each
END_BYTES: Final = (
    320 << 10
)  # bytes that one end of a pair holds at most: its buffer, and the message that crosses its size
_PAIR_SIZE: Final = 104 << 10  # asked for: what the kernel gives where nobody asks
_SHARE: Final = 4


class SocketBuffers:
    """Of one agent, of `memory` bytes; 0 is no limit."""

    def __init__(self, memory: int) -> None:
        self._maximum = memory // _SHARE
        self._ends: set[int] = set()
        self._connections: dict[int, ConnectionEnds] = {}  # by inode of the end that connected

    def open_pair(self, kind: int) -> tuple[socket.socket, socket.socket]:
        """Two ends that are connected with each other. Raises Denied at the most, and OSError."""
        self.check(2 * END_BYTES)
        first, second = socket.socketpair(socket.AF_UNIX, kind)
        for sock in (first, second):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _PAIR_SIZE)
            self._ends.add(os.fstat(sock.fileno()).st_ino)
        return first, second

    def before_connect(self, inode: int) -> None:
        """That socket is about to. Raises Denied at the most."""
        if inode not in self._connections:
            self.check(CONNECTION_BYTES)

    def after_connect(self, inode: int, sock: socket.socket, port: int) -> None:
        """It has tried to, so that it has a port of its own; to `port`."""
        if local_port := sock.getsockname()[1]:
            self._connections[inode] = connection_ends(local_port, port)

    def check(self, needed: int) -> None:
        """Whether so many bytes fit in. Raises Denied at the most."""
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
    """Sets the sizes of a socket of TCP, which those that its server accepts take over."""
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, BUFFER_SIZE)
