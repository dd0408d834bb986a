"""Leases where the clock steps, the machine is suspended or the process is stopped."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from agentbox_testkit.clock import ManualClock
from agentbox_testkit.contracts.beads_common import LEASE, make_task
from agentbox_testkit.local_store import LocalStore

from agentbox.adapters.beads.lease_clock import LeaseClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def adapter(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Any]:
    store = LocalStore("beads", "local-sqlite", tmp_path, clock=clock)
    yield await store.open()
    await store.close_all()


@pytest.mark.parametrize("seconds", [3600, -3600])
async def test_a_step_of_the_clock_ends_and_lengthens_no_lease(
    adapter: Any, clock: ManualClock, seconds: int
) -> None:
    """The remaining time is the same as before; then it expires in time, and not before."""
    bead = await make_task(adapter)
    await adapter.claim(bead.id, "w", lease_id=LEASE, lease_s=60)
    clock.advance(20)
    clock.set_wall(clock.now() + timedelta(seconds=seconds))
    found = await adapter.show(bead.id)
    assert (found.status, found.lease_expires_at) == (
        "claimed",
        clock.now() + timedelta(seconds=40),
    )
    clock.advance(39)
    assert (await adapter.show(bead.id)).status == "claimed"
    clock.advance(2)
    assert (await adapter.show(bead.id)).status == "open"


async def test_a_stopped_process_takes_no_time_from_a_lease(
    adapter: Any, clock: ManualClock
) -> None:
    """Both clocks continued and nothing was checked: the claimant could not renew either."""
    bead = await make_task(adapter)
    await adapter.claim(bead.id, "w", lease_id=LEASE, lease_s=60)
    adapter._lease_clock._polled_at -= 100
    clock.advance(100)
    assert (await adapter.show(bead.id)).status == "claimed"
    assert (await adapter.heartbeat(bead.id, LEASE)).bead.status == "claimed"


async def test_what_could_not_be_paid_is_owed(adapter: Any, clock: ManualClock) -> None:
    """A refused call undoes its transaction, and the next one moves the leases."""
    bead = await make_task(adapter)
    await adapter.claim(bead.id, "w", lease_id=LEASE, lease_s=60)
    clock.set_wall(clock.now() + timedelta(hours=1))
    with pytest.raises(Exception, match="cannot find"):
        await adapter.release("no-such-bead", LEASE)
    assert (await adapter.show(bead.id)).status == "claimed"


async def test_a_clock_that_went_back_while_nothing_ran_leaves_nothing_claimed_for_long(
    tmp_path: Path, clock: ManualClock
) -> None:
    """A lease granted at a later time than it is now is good for its length from now."""
    store = LocalStore("beads", "local-sqlite", tmp_path, clock=clock)
    first = await store.open()
    bead = await make_task(first)
    await first.claim(bead.id, "w", lease_id=LEASE, lease_s=60)
    clock.set_wall(clock.now() - timedelta(days=1))
    again = await store.reopen()
    assert (await again.show(bead.id)).lease_expires_at == clock.now() + timedelta(seconds=60)
    clock.advance(61)
    assert (await again.show(bead.id)).status == "open"
    await store.close_all()


def test_small_differences_are_none(clock: ManualClock) -> None:
    """A slewed clock, and time that passes, add nothing."""
    leases = LeaseClock(clock)
    clock.advance(500)
    clock.set_wall(clock.now() + timedelta(milliseconds=400))
    assert not leases.poll()
    assert leases.pop_correction() == 0
