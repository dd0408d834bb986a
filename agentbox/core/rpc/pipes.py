"""The two ends of a JSON-RPC connection on pipes, as asyncio streams."""

import asyncio
import os


async def reading(fd: int, limit: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """Takes `fd` over; closing the transport closes it. A line longer than `limit` bytes is a ValueError of `readline`."""
    reader, loop = asyncio.StreamReader(limit), asyncio.get_running_loop()
    end = os.fdopen(fd, "rb", 0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), end)
    return reader, transport


async def writing(fd: int) -> asyncio.StreamWriter:
    """Takes `fd` over."""
    loop = asyncio.get_running_loop()
    end = os.fdopen(fd, "wb", 0)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), end
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)
