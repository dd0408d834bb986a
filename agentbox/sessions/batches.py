"""Items of a stream in batches: what arrives while one batch is handled is the next one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final, TypeVar

MAX_BATCH: Final = 128  # items; with more, the stream waits

T = TypeVar("T")


async def batches(items: AsyncIterator[T]) -> AsyncGenerator[list[T], None]:
    """Each has at least one item. Raises what the stream raises, after the items before."""
    waiting: asyncio.Queue[T | None] = asyncio.Queue(MAX_BATCH)

    async def collect() -> None:
        try:
            async for item in items:
                await waiting.put(item)
        finally:
            await waiting.put(None)

    task = asyncio.create_task(collect(), name="batches")
    try:
        is_over = False
        while not is_over:
            batch: list[T] = []
            item = await waiting.get()
            while item is not None:
                batch.append(item)
                if waiting.empty():
                    break
                item = waiting.get_nowait()
            is_over = item is None
            if batch:
                yield batch
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
