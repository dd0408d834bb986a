"""B13 and B14: the order of `ready`, the filters of `list`, schedules."""

import asyncio
import contextlib
import json
from datetime import timedelta
from typing import Any

import pytest

from agentbox.contracts.beads import BeadFilter
from agentbox.core.clock import to_wire
from agentbox.core.slot_errors import ValidationError
from agentbox_testkit.contracts.beads_common import LEASE, make_epic, ready_ids, spec
from agentbox_testkit.contracts.common import not_refused, transport

NO_REPETITIONS = (
    "PT59S",
    "P1M",
    "P",
    "PT",
    "* * * *",
    "* * * * * *",
    "61 * * * *",
    "0 0 31 2 *",
    "@daily",
    "",
)
"""Too short, months, broken, six fields, impossible."""


class OrderClauses:
    """Listings and schedules."""

    async def test_B13_ready_is_ordered(self, adapter: Any, clock: Any) -> None:
        """Priority, then not_before or created_at, then id; pages keep the order."""
        epic, _ = await adapter.create_epic(spec())
        sort_keys = []
        for priority, lead_seconds in ((9, 0), (0, 0), (5, 0), (5, 3600), (0, 0), (5, 0)):
            clock.advance(0.5)
            not_before = clock.now() - timedelta(seconds=lead_seconds) if lead_seconds else None
            bead, _ = await adapter.create_child(
                epic.id, spec(priority=priority, not_before=not_before)
            )
            sort_keys.append((priority, not_before or bead.created_at, bead.id))
        expected = [name for _, _, name in sorted(sort_keys)]
        assert await ready_ids(adapter) == expected
        paged, cursor = [], None
        for _ in range(3):
            page = await adapter.ready(limit=2, cursor=cursor)
            paged += [bead.id for bead in page.items]
            cursor = page.next_cursor
        assert paged == expected
        assert cursor is None

    async def test_B13_ready_leaves_out_what_cannot_be_claimed(
        self, adapter: Any, clock: Any
    ) -> None:
        """Live leases, future times, blocked and closed beads."""
        epic, (claimed, blocked, closed, free) = await make_epic(adapter, 4)
        later, _ = await adapter.create_child(
            epic.id, spec(not_before=clock.now() + timedelta(seconds=10))
        )
        await adapter.claim(claimed.id, "w", lease_id=LEASE)
        await adapter.add_dep(blocked.id, claimed.id)
        await adapter.close_bead(closed.id)
        assert await ready_ids(adapter) == [free.id]
        clock.advance(10)
        assert set(await ready_ids(adapter)) == {free.id, later.id}

    @transport
    async def test_B13_list_applies_every_filter(
        self, adapter: Any, principals: tuple[str, ...]
    ) -> None:
        """Each alone and together; ordered by id."""
        epic, (a, b) = await make_epic(adapter, 2, creator=principals[0], tags=("x",))
        other, _ = await adapter.create_child(epic.id, spec(creator=principals[1], tags=("y",)))
        await adapter.claim(a.id, principals[1], lease_id=LEASE)
        await adapter.close_bead(b.id)

        async def ids(**members: Any) -> list[str]:
            return [bead.id for bead in (await adapter.list(BeadFilter(**members))).items]

        assert await ids() == sorted([epic.id, a.id, b.id, other.id])
        assert await ids(status="claimed") == [a.id]
        assert await ids(kind="epic") == [epic.id]
        assert await ids(parent_id=epic.id) == sorted([a.id, b.id, other.id])
        assert await ids(tag="y") == [other.id]
        assert await ids(assignee=principals[1]) == [a.id]
        assert await ids(creator=principals[0]) == sorted([a.id, b.id])
        assert await ids(creator=principals[0], status="closed", tag="x") == [b.id]

    async def test_B14_a_due_time_makes_one_child(self, adapter: Any, clock: Any) -> None:
        """Created by ready, with the key `<id>@<due>`; a second call creates no other."""
        schedule, _ = await adapter.create_epic(
            spec("job", every="PT60S", tags=("x",), data={"a": 1}, priority=3)
        )
        assert schedule.kind == "schedule"
        assert await ready_ids(adapter) == []
        clock.advance(60)
        (child,) = (await adapter.ready()).items
        due = schedule.created_at + timedelta(seconds=60)
        assert child.dedup_key == f"{schedule.id}@{to_wire(due)}"
        assert (child.parent_id, child.title, child.tags, child.data, child.priority) == (
            schedule.id,
            "job",
            ("x",),
            {"a": 1},
            3,
        )
        assert await ready_ids(adapter) == [child.id]

    async def test_B14_claim_next_makes_the_child_too(self, adapter: Any, clock: Any) -> None:
        """And claims it."""
        await adapter.create_epic(spec("job", every="PT60S"))
        clock.advance(61)
        assert (await adapter.claim_next("w", lease_id=LEASE)).bead.title == "job"

    async def test_B14_cron_is_utc(self, adapter: Any, clock: Any) -> None:
        """Five fields; due at the matching minute."""
        schedule, _ = await adapter.create_epic(spec(every="30 6 * * *"))
        clock.advance(6 * 3600 + 29 * 60)
        assert await ready_ids(adapter) == []
        clock.advance(60)
        (child,) = (await adapter.ready()).items
        assert child.dedup_key == f"{schedule.id}@2026-01-01T06:30:00.000Z"

    async def test_B14_skip_makes_none_while_one_is_unclosed(
        self, adapter: Any, clock: Any
    ) -> None:
        """The next is created at the first due time after the close."""
        await adapter.create_epic(spec(every="PT60S"))
        clock.advance(60)
        (first,) = await ready_ids(adapter)
        clock.advance(60)
        assert await ready_ids(adapter) == [first]
        await adapter.close_bead(first)
        assert await ready_ids(adapter) == []
        clock.advance(60)
        assert len(await ready_ids(adapter)) == 1

    async def test_B14_queue_makes_one_more(self, adapter: Any, clock: Any) -> None:
        """Open children do not delay it."""
        await adapter.create_epic(spec(every="PT60S", overlap="queue"))
        for count in (1, 2, 3):
            clock.advance(60)
            assert len(await ready_ids(adapter)) == count

    @pytest.mark.parametrize("every", ["PT1H", "0 * * * *"])
    async def test_B14_after_downtime_only_the_latest_missed_time(
        self, adapter: Any, clock: Any, every: str
    ) -> None:
        """A hundred missed times create one child, for the last of them."""
        schedule, _ = await adapter.create_epic(spec(every=every, overlap="queue"))
        clock.advance(100 * 3600 + 5)
        (child,) = (await adapter.ready()).items
        due = schedule.created_at + timedelta(hours=100)
        assert child.dedup_key == f"{schedule.id}@{to_wire(due)}"
        clock.advance(3600)
        assert len(await ready_ids(adapter)) == 2

    @pytest.fixture
    def processes(self) -> int:
        """Of one store, at once."""
        return 10

    async def test_B14_many_processes_make_one(
        self, store: Any, adapter: Any, clock: Any, processes: int
    ) -> None:
        """The workers use the system clock, for which a schedule in the past is due."""
        await adapter.create_epic(spec(every="P1D", overlap="queue"))
        async with contextlib.AsyncExitStack() as stack:
            workers = [
                await stack.enter_async_context(store.worker("show-ready"))
                for _ in range(processes)
            ]
            outputs = await asyncio.gather(*(worker.communicate() for worker in workers))
        seen = {name for output, _ in outputs for name in json.loads(output)}
        assert len(seen) == 1
        assert len((await adapter.list(BeadFilter(kind="task"))).items) == 1

    async def test_B14_other_repetitions_are_refused(self, adapter: Any) -> None:
        """And nothing is created."""
        accepted = await not_refused(
            ValidationError, NO_REPETITIONS, lambda every: adapter.create_epic(spec(every=every))
        )
        assert accepted == []
        assert (await adapter.list()).items == ()
