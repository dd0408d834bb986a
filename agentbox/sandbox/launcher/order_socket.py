"""The reaper's end of a socket to its host: orders as lines of JSON, some with descriptors, and
reports the other way.
"""

import contextlib
import json
import socket
from collections.abc import Mapping
from typing import Any, Final

FDS: Final = 4  # of an order: control, stdin, stdout, stderr
_BLOCK: Final = 1 << 16


class OrderSocket:
    """Blocking. Descriptors come with the first byte of their order."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = bytearray()
        self._fds: list[int] = []

    def fileno(self) -> int:
        return self._socket.fileno()

    def read_line(self) -> bytes | None:
        """The first order, unparsed; None if the host has exited."""
        while b"\n" not in self._buffer:
            data = self._receive()
            if not data:
                return None
            self._buffer += data
        line, newline, remaining = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(remaining)
        return line + newline

    def receive(self) -> list[bytes] | None:
        """The complete orders that have come; None once the host has exited."""
        data = self._receive()
        if not data:
            return None
        self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        return [bytes(line) for line in lines]

    def pop_fds(self) -> tuple[int, int, int, int]:
        """Those of the order that is executed."""
        control, stdin, stdout, stderr = self._fds[:FDS]
        del self._fds[:FDS]
        return control, stdin, stdout, stderr

    def send(self, message: Mapping[str, Any]) -> None:
        """Does nothing if the host has exited."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _receive(self) -> bytes:
        """What the host sent; empty once it has exited."""
        try:
            data, fds, _, _ = socket.recv_fds(self._socket, _BLOCK, FDS, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            return b""
        self._fds += fds
        return data
