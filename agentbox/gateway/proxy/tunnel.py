"""Copies bytes in both directions between two streams until both close or the idle timeout."""

import asyncio
from collections.abc import Callable
from typing import Final

from agentbox.gateway.proxy.stream import ProxyStream

IDLE_SECONDS: Final = 300.0
ByteCounter = Callable[[int], None]
"""Called with the byte count before bytes are passed on. Raises to end the tunnel."""


async def tunnel(
    client: ProxyStream,
    upstream: ProxyStream,
    count: ByteCounter,
    *,
    idle_seconds: float = IDLE_SECONDS,
) -> None:
    """Propagates half-close: the other direction stays open. Raises what `count` raises, and
    TimeoutError after `idle_seconds` without data."""
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
            return  # one side was reset: nothing more can be delivered
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
