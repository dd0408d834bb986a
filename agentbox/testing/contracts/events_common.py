"""What the parts of the events suite share."""

from typing import Any

from agentbox.adapters.events.contract import Event, NewEvent


def new(type: str = "test.thing", **members: Any) -> NewEvent:
    """An event with a little data."""
    return NewEvent(**{"type": type, "data": {"a": [1, 2.5, None, "x"]}, **members})


async def fill(adapter: Any, count: int, **members: Any) -> list[Event]:
    """Appends that many, in calls of 100."""
    found: list[Event] = []
    for start in range(0, count, 100):
        numbers = range(start, min(count, start + 100))
        found += await adapter.append([new(data={"n": number}, **members) for number in numbers])
    return found


async def everything(adapter: Any) -> list[Event]:
    """Every record, page by page."""
    found: list[Event] = []
    since = -1
    while True:
        batch = await adapter.read(since=since, limit=1000)
        found += batch.events
        since = batch.next_since
        if since >= batch.head_seq:
            return found
