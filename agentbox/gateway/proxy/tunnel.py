"""Bytes both ways between two wires, until both ends have closed, or nobody says anything for too long."""

import asyncio
from collections.abc import Callable
from typing import Final

from agentbox.gateway.proxy.stream import ProxyStream

IDLE_SECONDS: Final = 300.0
ByteCounter = Callable[[int], None]
"""Told of bytes before they are passed on. Raises to end the tunnel."""


async def tunnel(
    client: ProxyStream,
    upstream: ProxyStream,
    count: ByteCounter,
    *,
    idle_seconds: float = IDLE_SECONDS,
) -> None:
    """An end that closes its way is told to the other side; the way back stays open. Raises what `count` raises, and
    TimeoutError when neither side said anything for `idle` seconds."""
    loop = asyncio.get_running_loop()

    async def copy(source: ProxyStream, sink: ProxyStream) -> None:
        while data := await source.read():
            deadline.reschedule(loop.time() + idle_seconds)
            count(len(data))
            await sink.write(data)
        sink.write_eof()

    async with asyncio.timeout(idle_seconds) as deadline:
        tasks = [
            asyncio.create_task(copy(client, upstream)),
            asyncio.create_task(copy(upstream, client)),
        ]
        try:
            await asyncio.gather(*tasks)
        except ConnectionResetError:
            return  # one side is gone for good: so is what it was told
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
