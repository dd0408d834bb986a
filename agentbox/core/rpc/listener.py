"""Listener with limits for unauthenticated connections: one short line within a few seconds, before
a session reads more.

Agents run with the uid of this program and may find its socket; their connections must not exhaust
memory or descriptors.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

from agentbox.core.rpc import messages

MAX_FIRST_LINE = 64 << 10  # bytes: a token and a few numbers
FIRST_LINE_SECONDS = 5.0
MAX_UNAUTHENTICATED = 64  # a further one replaces the oldest
_BACKLOG = 128
_RETRY_SECONDS = 0.1  # before accept is retried after running out of descriptors

OnConnect = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]


class RpcListener:
    """Listens at `path`, 0600. `on_connect` receives each connection with its first line in the
    reader. Raises OSError."""

    def __init__(self, path: Path, on_connect: OnConnect) -> None:
        self._on_connect = on_connect
        self._unauthenticated: dict[asyncio.Task[None], None] = {}
        self._socket = socket.socket(socket.AF_UNIX)
        old_umask = os.umask(0o177)
        try:
            self._socket.bind(str(path))
        finally:
            os.umask(old_umask)
        self._socket.listen(_BACKLOG)
        self._socket.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(), name="door")

    async def close(self) -> None:
        """Stop accepting; established connections stay open."""
        tasks = [self._accepting, *self._unauthenticated]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._socket.close()

    async def _accept(self) -> None:
        while True:
            try:
                peer, _ = await asyncio.get_running_loop().sock_accept(self._socket)
            except OSError:
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            if len(self._unauthenticated) >= MAX_UNAUTHENTICATED:
                oldest = next(iter(self._unauthenticated))
                del self._unauthenticated[oldest]
                oldest.cancel()
            task = asyncio.create_task(self._admit(peer))
            self._unauthenticated[task] = None
            task.add_done_callback(lambda done: self._unauthenticated.pop(done, None))
            await asyncio.sleep(0)  # let established connections run

    async def _admit(self, peer: socket.socket) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(peer.close)
            peer.setblocking(False)
            line = await _read_first_line(peer)
            if line:
                reader, writer = await asyncio.open_unix_connection(
                    sock=peer, limit=messages.LINE_LIMIT
                )
                stack.pop_all()
                reader.feed_data(line)
                self._on_connect(reader, writer)


async def _read_first_line(peer: socket.socket) -> bytes:
    """A complete line and possibly more; empty if the peer disconnects, times out or sends too
    much."""
    data = b""
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(FIRST_LINE_SECONDS):
            while b"\n" not in data and len(data) < MAX_FIRST_LINE:
                chunk = await asyncio.get_running_loop().sock_recv(peer, MAX_FIRST_LINE)
                if not chunk:
                    return b""
                data += chunk
    return data if b"\n" in data else b""
