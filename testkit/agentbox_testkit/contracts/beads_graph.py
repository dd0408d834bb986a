"""B5, B6, B12: dependencies, and the conditions and effects of closing an epic."""

import asyncio
from typing import Any

from agentbox.contracts.beads import BeadFilter
from agentbox.core.slot_errors import CycleRefused, InvalidTransition, NotFound, ValidationError
from agentbox_testkit.contracts.beads_common import LEASE, make_epic, new_lease_id, ready_ids, spec
from agentbox_testkit.contracts.common import expect_error, transport


class GraphClauses:
    """Edges between beads."""

    async def test_B05_add_dep_is_idempotent(self, adapter: Any) -> None:
        """A second call changes nothing; remove_dep removes the edge once."""
        _, (a, b) = await make_epic(adapter, 2)
        await adapter.add_dep(a.id, b.id)
        added = await adapter.show(a.id)
        await adapter.add_dep(a.id, b.id)
        assert await adapter.show(a.id) == added
        assert added.blocked_by == (b.id,)
        await adapter.remove_dep(a.id, b.id)
        removed = await adapter.show(a.id)
        await adapter.remove_dep(a.id, b.id)
        assert await adapter.show(a.id) == removed
        assert removed.blocked_by == ()

    @transport
    async def test_B05_unknown_beads_are_not_found(self, adapter: Any) -> None:
        """On either side."""
        _, (a,) = await make_epic(adapter, 1)
        await expect_error(NotFound, adapter.add_dep(a.id, "nobody"))
        await expect_error(NotFound, adapter.add_dep("nobody", a.id))

    @transport
    async def test_B05_cycles_are_refused_with_their_path(self, adapter: Any) -> None:
        """Self-dependency, a cycle of three, and a cycle through a parent edge; nothing changes."""
        epic, (a, b, c) = await make_epic(adapter, 3)
        await adapter.add_dep(a.id, b.id)
        await adapter.add_dep(b.id, c.id)
        before = [await adapter.show(x.id) for x in (a, b, c)]
        assert (await expect_error(CycleRefused, adapter.add_dep(a.id, a.id))).members["path"] == [
            a.id,
            a.id,
        ]
        assert (await expect_error(CycleRefused, adapter.add_dep(c.id, a.id))).members["path"] == [
            c.id,
            a.id,
            b.id,
            c.id,
        ]
        assert (await expect_error(CycleRefused, adapter.add_dep(a.id, epic.id))).members[
            "path"
        ] == [a.id, epic.id, a.id]
        assert [await adapter.show(x.id) for x in (a, b, c)] == before

    async def test_B05_edges_made_at_once_never_close_a_ring(self, adapter: Any) -> None:
        """Of two edges that would form a cycle together, one is rejected."""
        _, (a, b) = await make_epic(adapter, 2)
        outcomes = await asyncio.gather(
            adapter.add_dep(a.id, b.id), adapter.add_dep(b.id, a.id), return_exceptions=True
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == [
            "CycleRefused",
            "NoneType",
        ]

    async def test_B06_a_blocked_bead_waits_for_done(self, adapter: Any) -> None:
        """Not ready, not claimable, until the last blocker is closed as done; a failed one does not
        count.
        """
        epic, (a, b, c) = await make_epic(adapter, 3)
        await adapter.add_dep(a.id, b.id)
        await adapter.add_dep(a.id, c.id)
        assert await ready_ids(adapter, parent_id=epic.id) == sorted([b.id, c.id])
        await adapter.close_bead(b.id)
        error = await expect_error(InvalidTransition, adapter.claim(a.id, "w", lease_id=LEASE))
        assert error.members["blockers"] == [c.id]
        await adapter.close_bead(c.id)
        assert await ready_ids(adapter) == [a.id]
        assert (await adapter.claim(a.id, "w", lease_id=LEASE)).bead.id == a.id

    async def test_B06_a_failed_blocker_blocks(self, adapter: Any) -> None:
        """Closed as failed does not count as done; removing the edge frees the bead."""
        _, (a, b) = await make_epic(adapter, 2)
        await adapter.add_dep(a.id, b.id)
        await adapter.close_bead(b.id, outcome="failed")
        assert await ready_ids(adapter) == []
        assert await adapter.claim_next("w", lease_id=new_lease_id()) is None
        await adapter.remove_dep(a.id, b.id)
        assert await ready_ids(adapter) == [a.id]

    async def test_B12_an_epic_is_done_when_its_children_are_closed(self, adapter: Any) -> None:
        """Before that it is rejected with the open children; failed children count as closed."""
        epic, (a, b) = await make_epic(adapter, 2)
        await adapter.close_bead(a.id, outcome="failed")
        error = await expect_error(InvalidTransition, adapter.close_bead(epic.id))
        assert error.members["blockers"] == [b.id]
        await adapter.close_bead(b.id)
        assert (await adapter.close_bead(epic.id)).outcome == "done"

    async def test_B12_cancelling_an_epic_cancels_all_below(self, adapter: Any) -> None:
        """All open descendants, claimed ones too; closed ones keep their outcome."""
        epic, (a, b) = await make_epic(adapter, 2)
        deep, _ = await adapter.create_child(a.id, spec("deep"))
        await adapter.claim(deep.id, "w", lease_id=LEASE)
        await adapter.close_bead(b.id)
        await adapter.close_bead(epic.id, outcome="cancelled")
        outcomes = {
            bead.id: bead.outcome
            for bead in (await adapter.list(BeadFilter(status="closed"))).items
        }
        assert outcomes == {
            epic.id: "cancelled",
            a.id: "cancelled",
            deep.id: "cancelled",
            b.id: "done",
        }

    async def test_B15_at_most_256_blockers(self, adapter: Any) -> None:
        """The 257th is rejected."""
        epic, (a, *_) = await make_epic(adapter, 1)
        others = await asyncio.gather(*(adapter.create_child(epic.id, spec()) for _ in range(257)))
        await asyncio.gather(*(adapter.add_dep(a.id, bead.id) for bead, _ in others[:256]))
        await expect_error(ValidationError, adapter.add_dep(a.id, others[256][0].id))
        assert len((await adapter.show(a.id)).blocked_by) == 256
