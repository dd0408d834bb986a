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

from agentbox.sandbox.syscalls.denials import Denied
from agentbox.sandbox.syscalls.tables import Ends, Tables, ends

SIZE: Final = 128 << 10  # asked for; the kernel doubles it, for what it keeps of each message besides
CONNECTION: Final = 1 << 20  # bytes that both ends of one hold at most: two buffers each
END: Final = 320 << 10  # bytes that one end of a pair holds at most: its buffer, and the message that crosses its size
_PAIR_SIZE: Final = 104 << 10  # asked for: what the kernel gives where nobody asks
_SHARE: Final = 4


class Buffers:
    """Of one agent, of `memory` bytes; 0 is no limit."""

    def __init__(self, memory: int) -> None:
        self._most = memory // _SHARE
        self._ends: set[int] = set()
        self._connections: dict[int, Ends] = {}  # by inode of the end that connected

    def pair(self, kind: int) -> tuple[socket.socket, socket.socket]:
        """Two ends that are connected with each other. Raises Denied at the most, and OSError."""
        self.check(2 * END)
        near, far = socket.socketpair(socket.AF_UNIX, kind)
        for one in (near, far):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _PAIR_SIZE)
            self._ends.add(os.fstat(one.fileno()).st_ino)
        return near, far

    def connects(self, inode: int) -> None:
        """That socket is about to. Raises Denied at the most."""
        if inode not in self._connections:
            self.check(CONNECTION)

    def has_connected(self, inode: int, one: socket.socket, port: int) -> None:
        """It has tried to, so that it has a port of its own; to `port`."""
        if own := one.getsockname()[1]:
            self._connections[inode] = ends(own, port)

    def check(self, more: int) -> None:
        """Whether so many bytes fit in. Raises Denied at the most."""
        if self._most and self._held() + more > self._most:
            self._ends &= Tables.pairs()
            there = Tables.connections()
            self._connections = {inode: at for inode, at in self._connections.items() if _taken(there, at)}
            if self._held() + more > self._most:
                raise Denied(errno.ENOBUFS, "sockets", f"buffers at the limit of {self._most} bytes")

    def _held(self) -> int:
        return len(self._ends) * END + len(self._connections) * CONNECTION


def _taken(there: Counter[Ends], one: Ends) -> bool:
    there[one] -= 1
    return there[one] >= 0


def bounded(one: socket.socket) -> None:
    """Sets the sizes of a socket of TCP, which those that its server accepts take over."""
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        one.setsockopt(socket.SOL_SOCKET, option, SIZE)
