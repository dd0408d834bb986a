"""Bytes both ways between two wires, until both ends have closed, or nobody says anything for too long."""

import asyncio
from collections.abc import Callable
from typing import Final

from agentbox.gateway.proxy.wire import Wire

IDLE_SECONDS: Final = 300.0
Count = Callable[[int], None]
"""Told of bytes before they are passed on. Raises to end the tunnel."""


async def tunnel(one: Wire, other: Wire, count: Count, *, idle: float = IDLE_SECONDS) -> None:
    """An end that closes its way is told to the other side; the way back stays open. Raises what `count` raises, and
    TimeoutError when neither side said anything for `idle` seconds."""
    loop = asyncio.get_running_loop()

    async def pass_on(source: Wire, sink: Wire) -> None:
        while data := await source.read():
            clock.reschedule(loop.time() + idle)
            count(len(data))
            await sink.write(data)
        sink.end()

    async with asyncio.timeout(idle) as clock:
        ways = [asyncio.create_task(pass_on(one, other)), asyncio.create_task(pass_on(other, one))]
        try:
            await asyncio.gather(*ways)
        except ConnectionResetError:
            return  # one side is gone for good: so is what it was told
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
