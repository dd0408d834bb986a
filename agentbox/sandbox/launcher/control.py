"""The host's end of the socket to one reaper: what to run and orders go out, two lines about the leader come in."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Mapping
from typing import Any

_BLOCK = 1 << 16


class ControlSocket:
    """What the reaper said is read to its end, whatever became of what it was told.

    A stream of asyncio's would not do: it drops what it has not handed out once a write fails, and a reaper that leaves
    with an order unread fails both the next write (EPIPE) and the last read (ECONNRESET).
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._received = asyncio.StreamReader(limit=_BLOCK)
        asyncio.get_running_loop().add_reader(sock, self._on_readable)

    async def send(self, data: bytes) -> None:
        """All of it. Raises OSError when the reaper is gone."""
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    def send_order(self, order: Mapping[str, Any]) -> None:
        """Tells a living reaper. Nothing happens when it is gone; unix(7) takes so short a message whole or not at all."""
        if self._socket.fileno() >= 0:
            with contextlib.suppress(OSError):
                self._socket.send(json.dumps(order).encode() + b"\n")

    async def read_line(self) -> bytes:
        """The next line, empty once the reaper is gone."""
        return await self._received.readline()

    async def wait_closed(self) -> None:
        """Returns when no process holds the other end."""
        await self._received.read()

    def close(self) -> None:
        """The reaper, if it lives, ends its tree. Idempotent."""
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
