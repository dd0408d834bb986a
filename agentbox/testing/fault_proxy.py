"""A relay before a peer that breaks connections: `FaultProxy` stands between an adapter and the API that it calls."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

CHUNK = 1 << 16


class FaultProxy:
    """Relays TCP from a port of its own, or the one given, to another of loopback. Each attribute but `slow`, `lost` and `repeated` counts what is
    still to be broken."""

    def __init__(self, target: int, port: int = 0) -> None:
        self.target, self._port = target, port  # the next connection goes to the target
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.lose = (
            0  # replies to be dropped: the peer did what it was asked, and nobody hears of it
        )
        self.refuse = 0  # connections to be ended before a byte is passed on
        self.lost = 0
        self.truncate = 0  # replies to be cut after half of their first piece
        self.duplicate = (
            0  # requests to be sent twice: the peer gets the second when it has answered the first
        )
        self.repeated = 0
        self.slow = 0.0  # seconds that each piece of a reply takes

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """Where the adapter finds it."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if self.refuse:
                self.refuse -= 1
                return
            with suppress(
                ConnectionError
            ):  # nobody is there: the one below sees its connection end
                upstream = await asyncio.open_connection("127.0.0.1", self.target)
                try:
                    await self._relay((reader, writer), upstream)
                finally:
                    upstream[1].close()
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _relay(
        self,
        downstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Until either side ends, or a reply is lost."""
        request = bytearray()
        tasks = {
            asyncio.ensure_future(self._forward_request(downstream[0], upstream[1], request)),
            asyncio.ensure_future(self._forward_reply(upstream[0], downstream[1], request)),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _forward_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytearray
    ) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(CHUNK):
                request += chunk
                writer.write(chunk)
                await writer.drain()

    async def _forward_reply(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytearray
    ) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(CHUNK):
                repeated_request = bytes(request)
                request.clear()
                if self.duplicate and repeated_request:
                    self.duplicate -= 1
                    await self._repeat(repeated_request)
                await asyncio.sleep(self.slow)
                if self.truncate:
                    self.truncate -= 1
                    writer.write(chunk[: len(chunk) // 2])
                    await writer.drain()
                    return
                if self.lose:
                    self.lose -= 1
                    self.lost += 1
                    return
                writer.write(chunk)
                await writer.drain()

    async def _repeat(self, request: bytes) -> None:
        """Sends it on a connection of its own, and waits for the beginning of the reply."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.target)
        try:
            writer.write(request)
            await writer.drain()
            self.repeated += bool(await reader.read(CHUNK))
        finally:
            writer.close()
