"""V16: records of another box, stored with their origin."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import rfc8785

from agentbox.contracts.events import GENESIS, Event, Origin, Received
from agentbox.core.slot_errors import AlteredDelivery, OriginConflict, ValidationError
from agentbox_testkit.contracts.common import expect_error
from agentbox_testkit.contracts.events_common import caller_events, fill, new_event

BOX = "one"


def foreign_journal(count: int, *, text: str = "x", **members: Any) -> list[Event]:
    """Return records as another box has them, by the formula of the specification alone."""
    events: list[Event] = []
    prev, ts = GENESIS, datetime(2025, 6, 1, tzinfo=UTC)
    for seq in range(count):
        wire = {
            "agent_id": None,
            "data": {"n": seq, "said": text},
            "id": f"id-{seq}",
            "session_id": None,
            "source": "urn:x:one",
            "subject": None,
            "trace_id": "t",
            "type": "agent.started",
            **members,
        }
        event = Event.from_wire(
            {**wire, "seq": seq, "ts": ts.isoformat(), "prev_hash": prev, "hash": GENESIS}
        )
        body = {
            name: item
            for name, item in event.to_wire().items()
            if name not in ("hash", "prev_hash")
        }
        events.append(
            replace(event, hash=hashlib.sha256(prev.encode() + rfc8785.dumps(body)).hexdigest())
        )
        prev, ts = events[-1].hash, ts + timedelta(seconds=1)
    return events


def comparable(event: Event) -> dict[str, Any]:
    """Return the members that do not depend on the journal."""
    wire = event.to_wire()
    return {
        name: wire[name]
        for name in wire
        if name not in ("seq", "ts", "prev_hash", "hash", "origin")
    }


def origin_seqs(events: Sequence[Event]) -> list[int]:
    """Return the original numbers of delivered records, in local order."""
    return [event.origin.seq for event in events if event.origin is not None]


class ReceivedClauses:
    """Receiving records of another box."""

    async def test_V16_a_record_keeps_what_it_says_and_where_it_stood(
        self, store: Any, adapter: Any
    ) -> None:
        """Every member; original number, time and hashes in `origin`; the local chain is valid,
        also after a reopen.
        """
        (local,) = await adapter.append([new_event()])
        sent = foreign_journal(3)
        assert await adapter.receive(BOX, sent) == Received(
            stored=3, watermark=2, first_seq=1, last_seq=3
        )
        adapter = await store.reopen()
        first, *received = await caller_events(adapter)
        assert first == local
        assert [comparable(event) for event in received] == [comparable(event) for event in sent]
        assert [event.origin for event in received] == [
            Origin(box=BOX, seq=e.seq, ts=e.ts, prev_hash=e.prev_hash, hash=e.hash) for e in sent
        ]
        report = await adapter.verify()
        assert (report.ok, report.tail_hash) == (True, received[-1].hash)

    async def test_V16_what_is_known_is_not_stored_again(self, store: Any, adapter: Any) -> None:
        """In a later call, in one that overlaps, in the same call, after a reopen."""
        sent = foreign_journal(10)
        await adapter.receive(BOX, sent[:6])
        assert await adapter.receive(BOX, sent[2:5]) == Received(stored=0, watermark=5)
        assert (await adapter.receive(BOX, [*sent[4:8], *sent[6:8]])).stored == 2
        adapter = await store.reopen()
        assert await adapter.receive(BOX, sent[:8]) == Received(stored=0, watermark=7)
        assert (await adapter.receive(BOX, sent)).stored == 2
        assert origin_seqs(await caller_events(adapter)) == list(range(10))

    async def test_V16_deliveries_at_once_store_each_record_once(self, adapter: Any) -> None:
        """The same sixteen times, concurrently with local appends."""
        sent = foreign_journal(50)
        await asyncio.gather(*(adapter.receive(BOX, sent) for _ in range(16)), fill(adapter, 200))
        stored = await caller_events(adapter)
        assert origin_seqs(stored) == list(range(50))
        assert len(stored) == 250
        assert (await adapter.verify()).ok

    async def test_V16_a_gap_is_told(self, adapter: Any) -> None:
        """`mesh.gap` precedes the record after the gap; at the beginning, too."""
        sent = foreign_journal(9)
        await adapter.receive(BOX, [*sent[2:4], sent[7]])
        stored = await caller_events(adapter)
        assert [(event.type, event.origin and event.origin.seq) for event in stored] == [
            ("mesh.gap", None),
            ("agent.started", 2),
            ("agent.started", 3),
            ("mesh.gap", None),
            ("agent.started", 7),
        ]
        assert [event.data for event in stored if event.type == "mesh.gap"] == [
            {"box": BOX, "first_seq": 0, "last_seq": 1},
            {"box": BOX, "first_seq": 4, "last_seq": 6},
        ]
        assert (await adapter.verify()).ok

    async def test_V16_boxes_do_not_meet(self, adapter: Any) -> None:
        """Two boxes with the same records, and local ones with the same source and id: all are
        stored.
        """
        sent = foreign_journal(4)
        await adapter.append([new_event(source="urn:x:one", id="id-0")])
        assert (
            (await adapter.receive(BOX, sent)).stored
            == (await adapter.receive("two", sent)).stored
            == 4
        )
        (local,) = await adapter.append([new_event(source="urn:x:one", id="id-1")])
        assert local.origin is None
        assert len(await caller_events(adapter)) == 10

    @pytest.mark.parametrize(
        "change",
        [
            {"data": {"n": 9}},
            {"subject": "s"},
            {"type": "agent.exited"},
            {"trace_id": None},
            {"agent_id": "a"},
            {"source": "urn:x:two"},
            {"hash": "ab" * 32},
            {"prev_hash": "ab" * 32},
            {"seq": 7},
            {"ts": datetime(2025, 6, 2, tzinfo=UTC)},
        ],
    )
    async def test_V16_an_altered_record_is_refused(self, adapter: Any, change: Any) -> None:
        """Any member; the call stores nothing."""
        first, second, third = foreign_journal(3)
        await expect_error(
            AlteredDelivery, adapter.receive(BOX, [first, replace(second, **change), third])
        )
        assert await adapter.head() == (-1, GENESIS)

    async def test_V16_another_journal_under_the_same_name_is_refused(self, adapter: Any) -> None:
        """After the watermark, at it, and before it as far as records are known."""
        await adapter.receive(BOX, foreign_journal(5))
        other = foreign_journal(7, text="y")
        for start in (5, 4, 2, 0):
            await expect_error(OriginConflict, adapter.receive(BOX, other[start:]))
        assert origin_seqs(await caller_events(adapter)) == list(range(5))

    async def test_V16_records_of_a_third_box_are_refused(self, adapter: Any) -> None:
        """Only the box's own records are accepted."""
        (event,) = foreign_journal(1)
        origin = Origin(box="two", seq=3, ts=event.ts, prev_hash=GENESIS, hash=event.hash)
        await expect_error(ValidationError, adapter.receive(BOX, [replace(event, origin=origin)]))
        assert await adapter.head() == (-1, GENESIS)
