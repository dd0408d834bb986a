"""A target that answers requests of a proxy's client."""

import asyncio
from collections.abc import Awaitable, Callable

from support.gateway_fixture import TOKEN, GatewayFixture

Start = Callable[..., Awaitable[GatewayFixture]]
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
AUTH = f"Proxy-Authorization: Bearer {TOKEN}\r\n"


def answering(response: bytes, seen: list[bytes], length: int = 0) -> Talk:
    """A server that keeps the head and `length` bytes of a body, and answers these bytes."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(length))
        writer.write(response)
        await writer.drain()

    return talk


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
