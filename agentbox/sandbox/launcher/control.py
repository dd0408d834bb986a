"""The host's end of the socket to one reaper: sends the launch and orders, receives reports."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Mapping, Sequence
from typing import Any

_BLOCK = 1 << 16
_RETRY_SECONDS = 0.001


class ControlSocket:
    """Reads all that the reaper sent, even after a write has failed.

    An asyncio stream does not do: it drops unread data once a write fails, and a reaper that exits
    with an unread order fails both the next write (EPIPE) and the last read (ECONNRESET).
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._received = asyncio.StreamReader(limit=_BLOCK)
        asyncio.get_running_loop().add_reader(sock, self._on_readable)

    async def send(self, data: bytes) -> None:
        """Sends all of it. Raises OSError if the reaper has exited."""
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    def send_now(self, data: bytes) -> bytes:
        """Sends what the socket has room for, without waiting; returns the rest."""
        try:
            return data[self._socket.send(data) :]
        except BlockingIOError:
            return data

    async def send_fds(self, order: Mapping[str, Any], fds: Sequence[int]) -> None:
        """Sends an order with descriptors. Raises OSError if the reaper has exited."""
        data = json.dumps(order).encode() + b"\n"
        while True:
            try:
                socket.send_fds(self._socket, [data], fds)
                return
            except BlockingIOError:  # the reaper is busy
                await asyncio.sleep(_RETRY_SECONDS)

    def send_order(self, order: Mapping[str, Any]) -> None:
        """Sends an order; does nothing if the reaper has exited. unix(7) sends such a short message
        whole or not at all.
        """
        if self._socket.fileno() >= 0:
            with contextlib.suppress(OSError):
                self._socket.send(json.dumps(order).encode() + b"\n")

    async def read_line(self) -> bytes:
        """The next line, empty once the reaper has exited."""
        return await self._received.readline()

    async def wait_closed(self) -> None:
        """Returns when no process holds the other end."""
        await self._received.read()

    def close(self) -> None:
        """Makes a running reaper end its tree. Idempotent."""
        if self._socket.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()

    def _on_readable(self) -> None:
        try:
            data = self._socket.recv(_BLOCK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._received.feed_data(data)
            return
        asyncio.get_running_loop().remove_reader(self._socket)
        self._received.feed_eof()
