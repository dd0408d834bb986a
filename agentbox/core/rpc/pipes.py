"""Opens both ends of a JSON-RPC connection over pipes as asyncio streams."""

import asyncio
import os


async def open_reader(fd: int, limit: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """Takes ownership of `fd`; closing the transport closes it. `readline` raises ValueError for a
    line longer than `limit` bytes.
    """
    reader, loop = asyncio.StreamReader(limit), asyncio.get_running_loop()
    pipe = os.fdopen(fd, "rb", 0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader, transport


async def open_writer(fd: int) -> asyncio.StreamWriter:
    """Takes ownership of `fd`."""
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(fd, "wb", 0)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)
