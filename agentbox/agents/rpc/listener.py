"""Who comes in: a stranger gets room for one short line, and a few seconds to say it, before a session reads at length.

Agents have the uid of this program and may find its socket; what they send must cost no memory and no descriptors.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

from agentbox.core.rpc import messages

FIRST_LINE = 64 << 10  # bytes: a token and a few numbers
SECONDS = 5.0
STRANGERS = 64  # one more takes the place of the oldest
_BACKLOG = 128
_FULL_SECONDS = 0.1  # until a connection is tried again that no descriptor was left for

Enter = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]


class Door:
    """Listens at `path`, 0600. `enter` is given each connection with its first line in the reader. Raises OSError."""

    def __init__(self, path: Path, enter: Enter) -> None:
        self._enter = enter
        self._strangers: dict[asyncio.Task[None], None] = {}
        self._socket = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            self._socket.bind(str(path))
        finally:
            os.umask(before)
        self._socket.listen(_BACKLOG)
        self._socket.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(), name="door")

    async def close(self) -> None:
        """Nobody comes in any more; who is in stays."""
        tasks = [self._accepting, *self._strangers]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._socket.close()

    async def _accept(self) -> None:
        while True:
            try:
                peer, _ = await asyncio.get_running_loop().sock_accept(self._socket)
            except OSError:
                await asyncio.sleep(_FULL_SECONDS)
                continue
            if len(self._strangers) >= STRANGERS:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                oldest.cancel()
            task = asyncio.create_task(self._greet(peer))
            self._strangers[task] = None
            task.add_done_callback(lambda one: self._strangers.pop(one, None))
            await asyncio.sleep(0)  # whoever waits in line holds up nobody who is in

    async def _greet(self, peer: socket.socket) -> None:
        with contextlib.ExitStack() as until_in:
            until_in.callback(peer.close)
            peer.setblocking(False)
            line = await _first_line(peer)
            if line:
                reader, writer = await asyncio.open_unix_connection(sock=peer, limit=messages.LINE_LIMIT)
                until_in.pop_all()
                reader.feed_data(line)
                self._enter(reader, writer)


async def _first_line(peer: socket.socket) -> bytes:
    """What it said, a whole line and perhaps more; nothing when it left, took too long, or said too much."""
    said = b""
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(SECONDS):
            while b"\n" not in said and len(said) < FIRST_LINE:
                part = await asyncio.get_running_loop().sock_recv(peer, FIRST_LINE)
                if not part:
                    return b""
                said += part
    return said if b"\n" in said else b""
