"""From a pipe to a store, at a bounded rate."""

import asyncio
import os
import time

from agentbox.agents.pump import Pump
from agentbox.testing.until import until


async def test_what_is_left_is_taken_at_the_end() -> None:
    """`finish` takes what the pipe holds, closes it, and may be called again."""
    reading, writing = os.pipe()
    got: list[bytes] = []
    pump = Pump(reading, got.append)
    os.write(writing, b"last words")
    pump.finish()
    pump.finish()
    os.close(writing)
    assert b"".join(got) == b"last words"


async def test_the_end_of_the_pipe_closes_it() -> None:
    """After end of file the descriptor is gone."""
    reading, writing = os.pipe()
    Pump(reading, lambda _: None)
    os.close(writing)
    await until(lambda: not os.path.exists(f"/proc/self/fd/{reading}"), "the descriptor is closed")  # noqa: PTH110


async def test_a_flood_waits_in_its_own_pipe() -> None:
    """40 MiB take more than a second, and every byte arrives."""
    reading, writing = os.pipe()
    got = 0

    def count(data: bytes) -> None:
        nonlocal got
        got += len(data)

    Pump(reading, count)
    total, start = 40 << 20, time.monotonic()

    def flood() -> None:
        with os.fdopen(writing, "wb") as stream:
            for _ in range(total >> 16):
                stream.write(bytes(1 << 16))

    await asyncio.to_thread(flood)
    await until(lambda: got == total, "all of it has arrived")
    assert time.monotonic() - start > 1.0
