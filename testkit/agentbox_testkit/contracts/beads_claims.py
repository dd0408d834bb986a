"""B3, B7 to B11: who may claim, what a lease is, how a bead is closed."""

import asyncio
from datetime import timedelta
from typing import Any

from agentbox.adapters.runtime.context import CallContext, as_caller
from agentbox.core.slot_errors import AlreadyClaimed, InvalidTransition, LeaseLost, ValidationError
from agentbox_testkit.contracts.beads_common import (
    EXPIRY,
    LEASE,
    make_epic,
    make_task,
    new_lease_id,
    ready_ids,
    spec,
)
from agentbox_testkit.contracts.common import expect_error, transport


class ClaimClauses:
    """Leases."""

    async def test_B03_the_creator_is_not_an_assignee(
        self, adapter: Any, principals: tuple[str, ...]
    ) -> None:
        """A bead with a creator is ready, and another may claim it."""
        bead = await make_task(adapter, creator=principals[0])
        assert await ready_ids(adapter) == [bead.id]
        assert (
            await adapter.claim(bead.id, principals[1], lease_id=LEASE)
        ).bead.assignee == principals[1]

    async def test_B03_epics_and_schedules_are_never_claimable(self, adapter: Any) -> None:
        """Not ready, not claimable by id or with claim_next."""
        epic, _ = await adapter.create_epic(spec())
        schedule, _ = await adapter.create_child(epic.id, spec(every="PT1H"))
        assert await ready_ids(adapter) == []
        assert await adapter.claim_next("w", lease_id=LEASE) is None
        for bead in (epic, schedule):
            await expect_error(InvalidTransition, adapter.claim(bead.id, "w", lease_id=LEASE))

    @transport
    async def test_B07_one_of_64_claimers_wins(self, adapter: Any) -> None:
        """One Claim, 63 AlreadyClaimed, and the bead shows the winner."""
        bead = await make_task(adapter)
        calls = (adapter.claim(bead.id, f"w{n}", lease_id=new_lease_id()) for n in range(64))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        winners = [claim for claim in outcomes if not isinstance(claim, BaseException)]
        assert len(winners) == 1
        assert sum(isinstance(claim, AlreadyClaimed) for claim in outcomes) == 63
        assert (await adapter.show(bead.id)).assignee == winners[0].bead.assignee

    async def test_B07_workers_share_beads_without_overlap(self, adapter: Any) -> None:
        """16 workers on 200 beads: each exactly once, then None."""
        _, children = await make_epic(adapter, 200)
        claimed: list[str] = []

        async def work(name: str) -> None:
            while (claim := await adapter.claim_next(name, lease_id=new_lease_id())) is not None:
                claimed.append(claim.bead.id)

        await asyncio.gather(*(work(f"w{n}") for n in range(16)))
        assert sorted(claimed) == sorted(child.id for child in children)
        assert await adapter.claim_next("late", lease_id=new_lease_id()) is None

    async def test_B07_claim_next_takes_parent_and_tags(self, adapter: Any) -> None:
        """Only children of that parent that have all of the tags."""
        epic, _ = await make_epic(adapter, 1, tags=("a",))
        matching, _ = await adapter.create_child(epic.id, spec(tags=("a", "b")))
        await make_epic(adapter, 1, tags=("a", "b"), priority=0)
        claim = await adapter.claim_next(
            "w", lease_id=new_lease_id(), parent_id=epic.id, tags=("b", "a")
        )
        assert claim.bead.id == matching.id
        assert (
            await adapter.claim_next(
                "w", lease_id=new_lease_id(), parent_id=epic.id, tags=("b", "a")
            )
            is None
        )

    async def test_B08_the_lease_id_is_the_authority(self, adapter: Any) -> None:
        """The same lease id returns the same Claim; another one is rejected, also for the same
        assignee.
        """
        bead = await make_task(adapter)
        first = await adapter.claim(bead.id, "w", lease_id=LEASE)
        assert await adapter.claim(bead.id, "w", lease_id=LEASE) == first
        error = await expect_error(
            AlreadyClaimed, adapter.claim(bead.id, "w", lease_id=new_lease_id())
        )
        assert error.members["assignee"] == "w"
        assert (await adapter.show(bead.id)).attempts == 1

    async def test_B08_a_repeated_claim_next_takes_no_second_bead(self, adapter: Any) -> None:
        """The lease id returns the bead that it already holds."""
        await make_epic(adapter, 2)
        first = await adapter.claim_next("w", lease_id=LEASE)
        assert await adapter.claim_next("w", lease_id=LEASE) == first
        assert len(await ready_ids(adapter)) == 1

    @transport
    async def test_B08_no_read_shows_a_lease(self, adapter: Any) -> None:
        """Not in show, list or an error."""
        bead = await make_task(adapter)
        await adapter.claim(bead.id, "w", lease_id=LEASE)
        error = await expect_error(
            AlreadyClaimed, adapter.claim(bead.id, "v", lease_id=new_lease_id())
        )
        outputs = [
            (await adapter.show(bead.id)).to_wire(),
            (await adapter.list()).to_wire(),
            error.to_problem(),
        ]
        assert LEASE not in str(outputs)

    async def test_B09_heartbeat_extends_from_the_stores_clock(
        self, adapter: Any, clock: Any
    ) -> None:
        """Now plus the requested length, else the slot's own."""
        bead = await make_task(adapter)
        await adapter.claim(bead.id, "w", lease_id=LEASE, lease_s=100)
        clock.advance(50)
        claim = await adapter.heartbeat(bead.id, LEASE, lease_s=30)
        assert claim.expires_at == clock.now() + timedelta(seconds=30)
        assert (await adapter.show(bead.id)).lease_expires_at == claim.expires_at
        assert (await adapter.heartbeat(bead.id, LEASE)).expires_at == clock.now() + timedelta(
            seconds=60
        )

    @transport
    async def test_B09_a_wrong_lease_is_lost(self, adapter: Any) -> None:
        """For heartbeat, release and close; nothing changes."""
        bead = await make_task(adapter)
        await adapter.claim(bead.id, "w", lease_id=LEASE)
        before = await adapter.show(bead.id)
        await expect_error(LeaseLost, adapter.heartbeat(bead.id, new_lease_id()))
        await expect_error(LeaseLost, adapter.release(bead.id, new_lease_id()))
        await expect_error(LeaseLost, adapter.close_bead(bead.id, lease_id=new_lease_id()))
        assert await adapter.show(bead.id) == before

    async def test_B09_an_expired_lease_frees_the_bead(self, adapter: Any, clock: Any) -> None:
        """Claimable at once; the previous holder cannot change it."""
        bead = await make_task(adapter)
        await adapter.claim(bead.id, "slow", lease_id=LEASE)
        clock.advance(EXPIRY)
        assert await ready_ids(adapter) == [bead.id]
        assert (await adapter.show(bead.id)).status == "open"
        await expect_error(LeaseLost, adapter.heartbeat(bead.id, LEASE))
        second = new_lease_id()
        await adapter.claim(bead.id, "quick", lease_id=second)
        before = await adapter.show(bead.id)
        await expect_error(LeaseLost, adapter.close_bead(bead.id, lease_id=LEASE))
        await expect_error(LeaseLost, adapter.release(bead.id, LEASE))
        assert await adapter.show(bead.id) == before
        done = await adapter.close_bead(bead.id, lease_id=second)
        await expect_error(LeaseLost, adapter.close_bead(bead.id, lease_id=LEASE))
        assert await adapter.show(bead.id) == done

    async def test_B10_release_reopens_after_the_delay(self, adapter: Any, clock: Any) -> None:
        """Not ready and not claimable before now plus `delay_s`."""
        bead = await make_task(adapter)
        await adapter.claim(bead.id, "w", lease_id=LEASE)
        released = await adapter.release(bead.id, LEASE, delay_s=30, note="later")
        assert (released.status, released.assignee, released.note) == ("open", None, "later")
        assert await ready_ids(adapter) == []
        await expect_error(InvalidTransition, adapter.claim(bead.id, "w", lease_id=new_lease_id()))
        clock.advance(30)
        assert await ready_ids(adapter) == [bead.id]
        assert (await adapter.claim(bead.id, "w", lease_id=new_lease_id())).bead.attempts == 2

    async def test_B10_a_lease_that_expires_at_the_last_attempt_fails_the_bead(
        self, adapter: Any, clock: Any
    ) -> None:
        """Closed as failed, note `attempts exhausted`; before that it is open again."""
        bead = await make_task(adapter, max_attempts=2)
        for attempt in (1, 2):
            assert (
                await adapter.claim(bead.id, "w", lease_id=new_lease_id())
            ).bead.attempts == attempt
            clock.advance(EXPIRY)
        stored = await adapter.show(bead.id)
        assert (stored.status, stored.outcome, stored.note) == (
            "closed",
            "failed",
            "attempts exhausted",
        )
        await expect_error(InvalidTransition, adapter.claim(bead.id, "w", lease_id=new_lease_id()))

    @transport
    async def test_B11_close_stores_what_it_is_given(self, adapter: Any, clock: Any) -> None:
        """Outcome, note, result and time; the lease has ended."""
        bead = await make_task(adapter)
        await adapter.claim(bead.id, "w", lease_id=LEASE)
        clock.advance(1)
        closed = await adapter.close_bead(
            bead.id, outcome="failed", note="n", result={"code": 7}, lease_id=LEASE
        )
        assert await adapter.show(bead.id) == closed
        assert (closed.outcome, closed.note, closed.result, closed.closed_at) == (
            "failed",
            "n",
            {"code": 7},
            clock.now(),
        )
        assert (closed.assignee, closed.lease_expires_at) == ("w", None)

    async def test_B11_a_claimed_bead_needs_its_lease(self, adapter: Any) -> None:
        """Without it only the holder may close; scope admin may force it."""
        bead = await make_task(adapter)
        await adapter.claim(bead.id, "w", lease_id=LEASE)
        await expect_error(LeaseLost, adapter.close_bead(bead.id))
        assert (await adapter.show(bead.id)).status == "claimed"
        with as_caller(CallContext(principal="boss", scopes=frozenset({"admin"}))):
            assert (await adapter.close_bead(bead.id, outcome="cancelled")).outcome == "cancelled"

    async def test_B11_repeating_a_close_changes_nothing(self, adapter: Any) -> None:
        """The same outcome returns the same bead; another is rejected; a closed bead cannot be
        claimed.
        """
        bead = await make_task(adapter)
        await adapter.claim(bead.id, "w", lease_id=LEASE)
        closed = await adapter.close_bead(bead.id, lease_id=LEASE, note="first")
        assert await adapter.close_bead(bead.id, lease_id=LEASE, note="second") == closed
        assert await adapter.close_bead(bead.id) == closed
        await expect_error(InvalidTransition, adapter.close_bead(bead.id, outcome="failed"))
        await expect_error(InvalidTransition, adapter.claim(bead.id, "w", lease_id=new_lease_id()))
        await expect_error(ValidationError, adapter.close_bead(bead.id, outcome="finished"))
        assert await adapter.show(bead.id) == closed
