"""The end of a journal whose store hangs."""

import asyncio

import pytest

from agentbox.adapters.runtime.journal import BestEffortJournal


async def test_a_record_that_hangs_holds_nobody_beyond_their_time(box):
    """`drain` within a timeout ends with the timeout; once the record is done, it returns by itself."""
    container = box.container()
    journal = BestEffortJournal(container._lifecycles["events"], box.metrics)
    go_on = asyncio.Event()
    waiting = asyncio.create_task(journal.write_shielded(go_on.wait))
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await journal.drain()
    go_on.set()
    async with asyncio.timeout(30):
        await journal.drain()
    await waiting
    await container.stop()
