"""From a pipe to a store, at a bounded rate."""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest
from agentbox_testkit.wait import wait_until

from agentbox.agents.runs.pump import Pump, _bytes_in_pipe


async def test_what_is_left_is_taken_at_the_end() -> None:
    """`finish` reads what the pipe contains, closes it, and may be called again."""
    reading, writing = os.pipe()
    got: list[bytes] = []
    pump = Pump(reading, got.append)
    os.write(writing, b"last words")
    pump.finish()
    pump.finish()
    os.close(writing)
    assert b"".join(got) == b"last words"


async def test_the_end_of_the_pipe_closes_it() -> None:
    """After end of file the descriptor is closed."""
    reading, writing = os.pipe()
    Pump(reading, lambda _: None)
    os.close(writing)
    await wait_until(
        lambda: not os.path.exists(f"/proc/self/fd/{reading}"),  # noqa: PTH110
        "the descriptor is closed",
    )


@pytest.mark.limit("output_rate")
async def test_a_flood_waits_in_its_own_pipe() -> None:
    """40 MiB take more than a second, and every byte arrives; output of another agent is read
    before the flood ends."""
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

    beside, speaking = os.pipe()
    heard: list[int] = []
    Pump(beside, lambda _: heard.append(got))
    flooding = asyncio.create_task(asyncio.to_thread(flood))
    await wait_until(lambda: got > 0, "the flood has begun")
    os.write(speaking, b"a word")
    await flooding
    await wait_until(lambda: got == total, "all of it has arrived")
    assert time.monotonic() - start > 1.0
    assert heard[0] < total
    os.close(speaking)


async def test_whoever_else_holds_the_pipe_cannot_hold_up_the_end(tmp_path: Path) -> None:
    """`finish` reads what was there when the tree ended: another process that opened the pipe and
    continues to write is not awaited."""
    reading, writing = os.pipe()
    os.write(writing, b"last words\n")
    kept, most = tmp_path / "kept", 1 << 40

    def store(data: bytes) -> None:
        """On a slow disk: the pipe is full again when it returns."""
        with kept.open("ab") as stream:
            stream.write(data)
            os.fsync(stream.fileno())
        assert kept.stat().st_size < most, "finish goes on for as long as somebody writes"

    pump = Pump(reading, store)
    with subprocess.Popen(["yes"], stdout=writing) as stranger:
        os.close(writing)
        await wait_until(lambda: _bytes_in_pipe(reading) >= 1 << 15, "the pipe is filled")
        most = kept.stat().st_size + (4 << 20) if kept.exists() else 4 << 20
        try:
            pump.finish()
        finally:
            stranger.kill()
    assert kept.read_bytes().startswith(b"last words\n")
