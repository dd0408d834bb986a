"""`FaultProxy` is a relay between an adapter and its API that breaks connections."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

CHUNK = 1 << 16


class FaultProxy:
    """Relays TCP from a port of its own, or the given one, to another on loopback. Each attribute
    except `slow`, `lost` and `repeated` counts the faults still to be injected.
    """

    def __init__(self, target: int, port: int = 0) -> None:
        self.target, self._port = target, port  # the next connection goes to the target
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.lose = 0  # replies to drop after the peer has executed the request
        self.refuse = 0  # connections to close before a byte is relayed
        self.lost = 0
        self.truncate = 0  # replies to cut after half of their first chunk
        self.duplicate = (
            0  # requests to send twice: the peer gets the second after it has answered the first
        )
        self.repeated = 0
        self.slow = 0.0  # delay in seconds of each chunk of a reply

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
        """The URL for the adapter."""
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
            with suppress(ConnectionError):  # the client sees its connection close
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
        """Relays until either side ends, or a reply is dropped."""
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
        """Sends the request on a separate connection, and waits for the beginning of the reply."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.target)
        try:
            writer.write(request)
            await writer.drain()
            self.repeated += bool(await reader.read(CHUNK))
        finally:
            writer.close()
