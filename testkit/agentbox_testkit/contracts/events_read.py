"""V4 and V5: reading and subscribing."""

import asyncio
from typing import Any

from agentbox.contracts.events import Event, EventFilter
from agentbox.core.slot_errors import SlotUnavailable, ValidationError
from agentbox_testkit.contracts.common import expect_error, transport
from agentbox_testkit.contracts.events_common import fill, new_event
from agentbox_testkit.wait import wait_until


async def take_events(stream: Any, count: int, into: list[Event] | None = None) -> list[Event]:
    """Return the next items of a subscription, within 10 s."""
    events: list[Event] = [] if into is None else into
    async with asyncio.timeout(10):
        while len(events) < count:
            events.append(await anext(stream))
    return events


class ReadClauses:
    """Readers."""

    async def test_V04_read_is_in_order_after_since(self, adapter: Any) -> None:
        """Strictly after it, at most `limit`, with the head."""
        events = await fill(adapter, 30)
        batch = await adapter.read(since=9, limit=5)
        assert list(batch.events) == events[10:15]
        assert (batch.next_since, batch.head_seq) == (14, 29)
        assert (await adapter.read(since=29)).events == ()

    async def test_V04_a_filtered_reader_always_advances(self, adapter: Any) -> None:
        """`next_since` covers filtered records."""
        await fill(adapter, 20)
        (rare,) = await adapter.append([new_event("rare.one")])
        await fill(adapter, 20)
        batch = await adapter.read(limit=10, filter=EventFilter(types=("rare.*",)))
        assert (batch.events, batch.next_since) == ((rare,), 40)

    @transport
    async def test_V04_every_filter(self, adapter: Any) -> None:
        """Each member alone and combined; a type exactly or by prefix, not as a substring."""
        a, b, c = await adapter.append(
            [
                new_event("x.y", source="s", subject="u"),
                new_event("x.y.z", source="s", agent_id="g"),
                new_event("xx.y", source="r", session_id="h", subject="u"),
            ]
        )

        async def matching(**members: Any) -> list[Event]:
            return list((await adapter.read(filter=EventFilter(**members))).events)

        assert await matching(types=("x.y",)) == [a]
        assert await matching(types=("x.*",)) == [a, b]
        assert await matching(types=("x.y.z", "xx.*")) == [b, c]
        assert await matching(source="s") == [a, b]
        assert await matching(subject="u") == [a, c]
        assert await matching(agent_id="g") == [b]
        assert await matching(session_id="h") == [c]
        assert await matching(source="s", subject="u") == [a]

    async def test_V04_limits(self, adapter: Any) -> None:
        """1 to 1000."""
        for limit in (0, 1001):
            await expect_error(ValidationError, adapter.read(limit=limit))
        await expect_error(ValidationError, adapter.read(since=-2))

    @transport
    async def test_C06_paging_returns_each_record_once(self, adapter: Any) -> None:
        """While others are appended."""
        await fill(adapter, 50)
        seen, since = [], -1
        while since < 49:
            batch = await adapter.read(since=since, limit=7)
            seen += [event.seq for event in batch.events]
            since = batch.next_since
            await fill(adapter, 3)
        assert seen[:50] == list(range(50))
        assert len(set(seen)) == len(seen)

    @transport
    async def test_V05_replay_then_live_without_gap_or_repeat(self, adapter: Any) -> None:
        """A subscriber that starts in the middle of heavy appending gets each record once, in
        order.
        """
        await fill(adapter, 300)
        writing = asyncio.create_task(fill(adapter, 1500))
        stream = adapter.subscribe(since=99)
        events = await take_events(stream, 1700)
        await writing
        assert [event.seq for event in events] == list(range(100, 1800))
        await stream.aclose()

    async def test_V05_from_now(self, adapter: Any) -> None:
        """`since=None` starts after the head at the time of the call, not of the first wait."""
        await fill(adapter, 10)
        stream = adapter.subscribe()
        later = await fill(adapter, 3)
        assert await take_events(stream, 3) == later
        await stream.aclose()

    async def test_V05_filtered(self, adapter: Any) -> None:
        """Only what matches, across the switch to live."""
        await fill(adapter, 5)
        (old,) = await adapter.append([new_event("rare.one")])
        stream = adapter.subscribe(since=-1, filter=EventFilter(types=("rare.one",)))
        events = await take_events(stream, 1)
        await fill(adapter, 5)
        (live,) = await adapter.append([new_event("rare.one")])
        assert await take_events(stream, 2, events) == [old, live]
        await stream.aclose()

    @transport
    async def test_V05_a_slow_reader_holds_nobody_up(self, adapter: Any) -> None:
        """It misses nothing, and a fast reader is not slowed."""
        slow, fast = adapter.subscribe(since=-1), adapter.subscribe(since=-1)
        await adapter.append([new_event()])
        first = await take_events(slow, 1)
        events = await fill(adapter, 2000)
        assert [event.seq for event in await take_events(fast, 2001)] == list(range(2001))
        assert (await take_events(slow, 2001, first))[1:] == events
        await slow.aclose()
        await fast.aclose()

    @transport
    async def test_V05_a_subscriber_ends_with_the_slot(self, store: Any, adapter: Any) -> None:
        """Closing wakes waiting subscribers with SlotUnavailable."""
        stream = adapter.subscribe()
        pending = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        await store.close_all()
        await wait_until(pending.done, "the subscriber is notified")
        assert isinstance(pending.exception(), SlotUnavailable)
