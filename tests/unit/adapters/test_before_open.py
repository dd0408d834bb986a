"""What is awaited before a slot opens: where a test image delays a slot, or fails it."""

import asyncio

import pytest
from agentbox_testkit.wait import wait_until

from agentbox.api.background.test_hooks import slot_open_hook
from agentbox.box.supervision.fault_hooks import FaultHooks
from agentbox.core.slot_errors import SlotUnavailable


async def test_it_runs_before_each_open(box):
    """Once per attempt for each slot that is not off, when nothing of that slot is on disk yet;
    again when a slot recovers."""
    seen = []

    async def before(slot):
        seen.append((slot, box.paths.slot(slot).exists()))

    async with box.started(deps={"before_open": before}) as container:
        assert sorted(seen) == [("beads", False), ("events", False)]
        box.paths.slot("beads").rename(box.paths.state / "away")
        await wait_until(lambda: len(seen) >= 3, "beads is opened again")
        assert seen[2][0] == "beads"
        (box.paths.state / "away").rename(box.paths.slot("beads"))
        await wait_until(lambda: container.status()["beads"].state == "ok", "beads came back")


async def test_one_that_raises_is_a_failed_open(box):
    """The slot is down with that reason, counted as an error, nothing of it was opened; the others are not touched;
    once it raises no more, the next try succeeds."""
    refusing = asyncio.Event()
    refusing.set()

    async def before(slot):
        if slot == "beads" and refusing.is_set():
            raise OSError(28, "No space left on device")

    async with box.started(deps={"before_open": before}) as container:
        status = container.status()["beads"]
        assert (status.state, status.detail) == ("down", "cannot open it: No space left on device")
        assert status.retry_at is not None
        assert container.status()["events"].state == "ok"
        assert not box.paths.slot("beads").exists()
        assert (
            box.metric(
                "agentbox_adapter_open_total", slot="beads", impl="local-sqlite", outcome="error"
            )
            >= 1
        )
        with pytest.raises(SlotUnavailable):
            await container.beads.show("x")
        refusing.clear()
        await wait_until(lambda: container.status()["beads"].state == "ok", "beads came up")


async def test_one_that_takes_too_long_is_a_failed_open(box):
    """It is awaited within the time that an open has."""

    async def before(slot):
        if slot == "beads":
            await asyncio.Event().wait()

    async with box.started(deps={"before_open": before}) as container:
        assert container.status()["beads"].detail == "it did not open within 2 s"
        assert (
            box.metric(
                "agentbox_adapter_open_total", slot="beads", impl="local-sqlite", outcome="timeout"
            )
            == 1
        )


@pytest.mark.parametrize(
    ("hooks", "shown"), [(FaultHooks(fail_slot="beads"), "down"), (FaultHooks(), "ok")]
)
async def test_the_hook_of_a_test_image_fails_the_slot_it_names(box, hooks, shown):
    """AGENTBOX_TEST_FAIL_SLOT: down, and the reason names the hook. Without hooks nothing happens."""
    async with box.started(deps={"before_open": slot_open_hook(hooks)}) as container:
        status = container.status()["beads"]
        assert status.state == shown
        assert ("a test hook made it fail" in status.detail) is (shown == "down")
        assert container.status()["events"].state == "ok"


async def test_the_hook_of_a_test_image_delays_the_slot_it_names(box):
    """AGENTBOX_TEST_DELAY_SLOT: that slot still connects when the others are ready, and is ready in the end."""
    container = box.container(
        required=("events",),
        deps={"before_open": slot_open_hook(FaultHooks(delay_slot={"beads": 0.4}))},
    )
    seen, began = [], asyncio.get_running_loop().time()
    await container.start(
        lambda: seen.append({slot: row.state for slot, row in container.status().items()})
    )
    assert (seen[0]["events"], seen[0]["beads"]) == ("ok", "connecting")
    assert asyncio.get_running_loop().time() - began >= 0.4
    assert container.status()["beads"].state == "ok"
    await container.stop()
