"""A proxy as companies have them: it asks for a user, ends TLS with certificates of its own, and
passes what it read on to servers of the test. Names are looked up by the proxy alone.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from support.authority import Authority

_CHUNK = 1 << 16


class Seen(NamedTuple):
    """One request that reached the proxy: what was asked of the proxy, and as whom."""

    line: str
    account: str


class InterceptingProxy:
    """`servers`: name -> the port of a plain HTTP server on loopback; other names are refused with
    403. `account` is `user:password`, "" = anybody. `days` below 0: its certificates expired."""

    def __init__(
        self, authority: Authority, servers: Mapping[str, int], account: str = "", days: int = 2
    ) -> None:
        self._authority, self._servers, self._days = authority, dict(servers), days
        self._account = account
        self.seen: list[Seen] = []
        self.port = 0

    @contextmanager
    def listen(self, listener: socket.socket | None = None) -> Iterator[InterceptingProxy]:
        """Serves at that socket, by default a new one of loopback, until the block ends."""
        loop = asyncio.new_event_loop()
        sock = listener or socket.create_server(("127.0.0.1", 0))
        server = loop.run_until_complete(asyncio.start_server(self._serve, sock=sock))
        self.port = sock.getsockname()[1]
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(server.close)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(5)
            for task in (left := asyncio.all_tasks(loop)):
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left))
            loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await self._answer(reader, writer)
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.rstrip().split("\r\n")
        account = next((_account(field) for field in fields if _is_account(field)), "")
        self.seen.append(Seen(line, account))
        method, target, _ = line.split(" ")
        is_tunnel = method == "CONNECT"
        authority = target if is_tunnel else target.split("/")[2]
        host = authority.rpartition(":")[0] if ":" in authority else authority
        if account != self._account:
            await _refuse(writer, '407 Required\r\nProxy-Authenticate: Basic realm="proxy"')
            return
        if host not in self._servers:
            await _refuse(writer, "403 Forbidden")
            return
        to_server = await asyncio.open_connection("127.0.0.1", self._servers[host])
        if is_tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await writer.drain()
            await writer.start_tls(self._authority.context(host, self._days))
        else:
            kept = [f for f in fields if not f.lower().startswith(("proxy-", "connection:"))]
            path = "/" + target.split("/", 3)[3]
            text = "\r\n".join([f"{method} {path} HTTP/1.1", *kept, "Connection: close"])
            to_server[1].write(f"{text}\r\n\r\n".encode("latin-1"))
        await asyncio.gather(_pass(reader, to_server[1]), _pass(to_server[0], writer))


def _is_account(field: str) -> bool:
    return field.lower().startswith("proxy-authorization: basic ")


def _account(field: str) -> str:
    return base64.b64decode(field.rpartition(" ")[2]).decode()


async def _refuse(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()


async def _pass(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await source.read(_CHUNK):
            sink.write(piece)
            await sink.drain()
        sink.close()
