"""Shared helpers of the events suite."""

from pathlib import Path
from typing import Any

from agentbox.contracts.events import Event, NewEvent


def new_event(type: str = "test.thing", **members: Any) -> NewEvent:
    """Return an event with some data."""
    return NewEvent(**{"type": type, "data": {"a": [1, 2.5, None, "x"]}, **members})


async def fill(adapter: Any, count: int, **members: Any) -> list[Event]:
    """Append that many, in calls of 100."""
    events: list[Event] = []
    for start in range(0, count, 100):
        numbers = range(start, min(count, start + 100))
        events += await adapter.append(
            [new_event(data={"n": number}, **members) for number in numbers]
        )
    return events


async def all_events(adapter: Any) -> list[Event]:
    """Return every record, page by page."""
    events: list[Event] = []
    since = -1
    while True:
        batch = await adapter.read(since=since, limit=1000)
        events += batch.events
        since = batch.next_since
        if since >= batch.head_seq:
            return events


async def caller_events(adapter: Any) -> list[Event]:
    """As `all_events`, without the journal's own records of its delivery, which are written at
    unpredictable times: a host rejects the records of a third box, for instance, while a test still
    reads.
    """
    return [
        event
        for event in await all_events(adapter)
        if not event.type.startswith("journal.delivery.")
    ]


async def three_days(store: Any, adapter: Any, clock: Any, count: int = 40) -> Path:
    """Write two sealed segments and an open one; return the directory of the closed journal."""
    for _ in range(3):
        await fill(adapter, count)
        clock.advance(86400)
    await store.close_all()
    directory: Path = store.directory
    return directory


def edit_lines(path: Path, change: Any) -> None:
    """Rewrite a file by its lines."""
    mode = path.stat().st_mode
    path.chmod(0o600)
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    path.chmod(mode)
