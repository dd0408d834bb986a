"""WebSockets to an agent's pipes: bytes in both directions, typed errors."""

from collections.abc import AsyncIterator
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from agentbox.client.attach import MAX_MESSAGE, ReceivedProblems, to_client_error


class AsyncAttached:
    """Iterates over chunks of stdout until the end of the agent's output. One client at a time."""

    def __init__(self, url: str, socket: ClientConnection) -> None:
        self._socket, self._problems = socket, ReceivedProblems(url)

    async def send(self, data: bytes) -> None:
        """Writes to stdin; waits while the box's buffer is full. Raises the ApiError of rejected
        earlier input."""
        self._problems.check()
        try:
            for offset in range(0, len(data), MAX_MESSAGE):
                await self._socket.send(data[offset : offset + MAX_MESSAGE])
        except ConnectionClosed as error:
            self._problems.check_end(error)

    async def close_stdin(self) -> None:
        """Closes the agent's stdin."""
        self._problems.check()
        try:
            await self._socket.send(b"")
        except ConnectionClosed as error:
            self._problems.check_end(error)

    async def aclose(self) -> None:
        """Detaches; the agent continues. Idempotent."""
        await self._socket.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            try:
                message = await self._socket.recv()
            except ConnectionClosed as error:
                self._problems.check_end(error)
                return
            if isinstance(message, str):
                self._problems.add(message)
            else:
                yield message


async def attach(base: str, url: str, **connect_args: Any) -> AsyncAttached:
    """Connects. Raises ApiError or BoxUnreachable."""
    try:
        return AsyncAttached(base, await connect(url, **connect_args).__aenter__())
    except (OSError, InvalidHandshake, TimeoutError) as error:
        raise to_client_error(base, error) from error
