"""Keeps the index behind the journal."""

import asyncio
from typing import Final

import structlog

from agentbox.adapters.events.search.index import EMPTY, EventIndex
from agentbox.contracts.events import Events
from agentbox.core.slot_errors import AdapterError, CursorExpired

POLL_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 5.0
FORGET_SECONDS: Final = 60.0  # between two looks at what the journal has removed
BATCH: Final = 1000  # records
IDLE_RATIO: Final = 0.2  # of the time that a batch took: leaves the process to requests
_log = structlog.get_logger()


async def follow(index: EventIndex, events: Events) -> None:
    """Runs until cancelled. An index that cannot be used is made anew."""
    while True:
        try:
            await index.open()
            await _follow(index, events)
        except AdapterError as error:
            _log.warning("events not indexed", reason=error.message)
            await index.close()
            is_damaged = index.is_damaged
            if is_damaged:
                await index.remove()
            await asyncio.sleep(POLL_SECONDS if is_damaged else RETRY_SECONDS)
        except BaseException:
            await index.close()
            raise


async def _follow(index: EventIndex, events: Events) -> None:
    loop = asyncio.get_running_loop()
    position = await _start(index, events)
    look_at = loop.time()
    while True:
        started = loop.time()
        if started >= look_at:
            position = max(position, await _forget(index, events))
            look_at = started + FORGET_SECONDS
        try:
            batch = await events.read(since=position, limit=BATCH)
        except CursorExpired:
            look_at = started
            continue
        await index.add(batch.events)
        position = batch.next_since
        is_behind = position < batch.head_seq
        await asyncio.sleep(IDLE_RATIO * (loop.time() - started) if is_behind else POLL_SECONDS)


async def _start(index: EventIndex, events: Events) -> int:
    """The last indexed record; an index of another journal is emptied."""
    seq, digest = await index.position()
    if (seq, digest) == EMPTY:
        return -1
    try:
        found = (await events.read(since=seq - 1, limit=1)).events
    except CursorExpired:
        return seq  # all of it was removed from the journal
    if found and (found[0].seq, found[0].hash) == (seq, digest):
        return seq
    await index.close()
    await index.remove()
    await index.open()
    return -1


async def _forget(index: EventIndex, events: Events) -> int:
    """Removes what the journal has removed; the record before its oldest."""
    try:
        await events.read(since=-1, limit=1)
    except CursorExpired as error:
        oldest = int(error.members["oldest"])
        await index.forget_before(oldest)
        return oldest - 1
    return -1
