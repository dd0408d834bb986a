"""The container of slots: open, failed and recovered ones."""

import asyncio
import shutil
import threading
from dataclasses import replace

import pytest
from agentbox_testkit.contracts.beads_common import spec
from agentbox_testkit.contracts.events_common import all_events, new_event
from agentbox_testkit.local_store import LocalStore
from agentbox_testkit.wait import wait_until

from agentbox.adapters.runtime.slots import RequiredSlotFailed
from agentbox.core.deadline import Deadline
from agentbox.core.slot_errors import AdapterDisabled, SlotUnavailable, UnknownAdapterImpl


def state(container, slot):
    return container.status()[slot].state


async def test_slots_start_and_stop(box):
    """Open ones are ok, those that are off report it; after stop every call is refused and no
    thread remains."""
    before = set(threading.enumerate())
    async with box.started() as container:
        assert {slot: status.state for slot, status in container.status().items()} == {
            "beads": "ok", "pods": "off", "memory": "off", "events": "ok", "orchestrator": "off",
        }  # fmt: skip
        bead, _ = await container.beads.create_epic(spec())
        assert await container.beads.show(bead.id) == bead
        with pytest.raises(AdapterDisabled):
            await container.pods.head("x")
    with pytest.raises(SlotUnavailable):
        await container.beads.show(bead.id)
    # A thread ends a moment after its result.
    await wait_until(
        lambda: set(threading.enumerate()) <= before, "no thread of the container is left"
    )


async def test_all_off_starts_and_stops(box):
    """Nothing is opened, nothing is written."""
    async with box.started(uses={"beads": "off", "events": "off"}) as container:
        assert {status.state for status in container.status().values()} == {"off"}
    assert not box.paths.state.exists()


async def test_before_start_calls_are_refused(box):
    """The proxies exist, and report slot-unavailable; a slot that is off reports it at once."""
    container = box.container()
    with pytest.raises(SlotUnavailable):
        await container.beads.show("x")
    with pytest.raises(AdapterDisabled):
        await container.memory.stats()
    assert state(container, "beads") == "connecting"
    await container.stop()


def test_an_unknown_implementation_is_refused(box):
    """When the container is created."""
    with pytest.raises(UnknownAdapterImpl, match="sqlte"):
        box.container(uses={"beads": "sqlte"})


async def test_a_slow_open_loses_while_others_are_ready(box):
    """An orchestrator that never answers is down after its own time; beads and events did not wait in vain."""
    async with box.started(uses={"orchestrator": "local-process"}) as container:
        status = container.status()["orchestrator"]
        assert status.state == "down"
        assert status.retry_at is not None
        assert (state(container, "beads"), state(container, "events")) == ("ok", "ok")
        with pytest.raises(SlotUnavailable) as caught:
            await container.orchestrator.get("x")
        assert caught.value.members["impl"] == "local-process"
        assert caught.value.retry_after is not None


async def test_a_slot_that_is_down_is_reported_as_down_while_it_reconnects(box):
    """With the reason of the last attempt, until an attempt succeeds."""
    async with box.started(uses={"orchestrator": "local-process"}) as container:
        lifecycle = container._lifecycles["orchestrator"]
        await wait_until(lambda: lifecycle.state == "connecting", "the slot is opened again")
        assert lifecycle.status.state == "down"
        assert lifecycle.status.detail


async def test_a_required_orchestrator_must_open(box):
    """The start fails with one message, and nothing stays open."""
    container = box.container(uses={"orchestrator": "local-process"}, required=("orchestrator",))
    with pytest.raises(RequiredSlotFailed, match="cannot open the required slot orchestrator"):
        await container.start()
    with pytest.raises(SlotUnavailable):
        await container.beads.show("x")
    other = LocalStore("events", "local-jsonl", box.paths.prefix)
    await other.open()
    await other.close_all()


async def test_the_tries_of_required_slots_are_told_before_slow_others_end(box):
    """Code that waits for the required slots continues while an optional slot is still at its first
    attempt."""
    container = box.container(uses={"orchestrator": "local-process"}, required=("beads",))
    told = []
    await container.start(
        lambda: told.append({slot: state(container, slot) for slot in ("beads", "orchestrator")})
    )
    assert told == [{"beads": "ok", "orchestrator": "connecting"}]
    await container.stop()


async def test_a_start_that_ends_the_program_tells_nothing(box):
    """The seal of the boot must not treat a program as ready that is about to end."""
    container = box.container(uses={"orchestrator": "local-process"}, required=("orchestrator",))
    told = []
    with pytest.raises(RequiredSlotFailed):
        await container.start(lambda: told.append("told"))
    assert told == []


async def test_a_slot_that_goes_is_noticed_and_comes_back(box):
    """Its directory is removed: down within a check, and not created again; once it is back a new
    instance serves its content, without a restart."""
    async with box.started() as container:
        beads = container.beads
        kept, _ = await beads.create_epic(spec())
        box.paths.slot("beads").rename(box.paths.state / "away")
        await wait_until(
            lambda: (
                box.metric(
                    "agentbox_adapter_transitions_total",
                    slot="beads",
                    **{"from": "ready", "to": "down"},
                )
                == 1
            ),
            "down",
        )
        await wait_until(
            lambda: "remove stores/beads.json" in container.status()["beads"].detail,
            "the loss is told",
        )
        assert not box.paths.slot("beads").exists()
        (box.paths.state / "away").rename(box.paths.slot("beads"))
        await wait_until(lambda: state(container, "beads") == "ok", "beads came back")
        assert await beads.show(kept.id) == kept
        bead, _ = await beads.create_epic(spec())
        assert await beads.show(bead.id) == bead
        assert box.changes >= 3


async def test_a_slot_that_was_down_at_the_start_comes_up(box):
    """The journal is locked by another writer, then released."""
    holder = LocalStore("events", "local-jsonl", box.paths.prefix)
    await holder.open()
    async with box.started() as container:
        status = container.status()["events"]
        assert (status.state, "process" in status.detail) == ("down", True)
        with pytest.raises(SlotUnavailable):
            await container.events.head()
        await holder.close_all()
        await wait_until(lambda: state(container, "events") == "ok", "events came up")
        await container.events.append([new_event()])


async def test_a_connection_error_in_a_call_triggers_a_check(box):
    """Down well before the next check would have run."""
    async with box.started(timing=replace(box.timing, health_interval=3600.0)) as container:
        path = box.paths.slot("beads") / "beads.db"
        shutil.rmtree(box.paths.slot("beads"))
        path.parent.mkdir()
        path.write_bytes(b"")
        container._lifecycles["beads"].request_health_check()
        await wait_until(
            lambda: (
                box.metric(
                    "agentbox_adapter_transitions_total",
                    slot="beads",
                    **{"from": "ready", "to": "down"},
                )
                == 1
            ),
            "down",
        )


async def test_transitions_are_journalled(box):
    """slot.ready of each slot at the start, slot.down with the reason, and never a path of the host's."""
    async with box.started() as container:
        shutil.rmtree(box.paths.slot("beads"))
        await wait_until(
            lambda: "it is missing; restore it" in container.status()["beads"].detail,
            "the loss is told",
        )
        (box.paths.slot("stores") / "beads.json").unlink()
        await wait_until(
            lambda: (
                box.metric(
                    "agentbox_adapter_transitions_total",
                    slot="beads",
                    **{"from": "connecting", "to": "ready"},
                )
                == 2
            ),
            "back",
        )
        await container.journal.drain()
        events = await all_events(container.events)
    told = [(event.type, event.data["slot"]) for event in events]
    assert told[:2] in (
        [("slot.ready", "beads"), ("slot.ready", "events")],
        [("slot.ready", "events"), ("slot.ready", "beads")],
    )
    downs = [event.data["reason"] for event in events if event.type == "slot.down"]
    assert told[2:] == [*(("slot.down", "beads") for _ in downs), ("slot.ready", "beads")]
    assert downs[0] == "beads.db is missing"
    assert set(downs[1:]) == {
        "cannot open beads.db: it is missing; restore it, or remove stores/beads.json from the state directory to accept the loss"
    }


async def test_reconfigure_changes_over(box):
    """The old instance serves until the new one is open; an exclusive one is closed first; off and back."""
    async with box.started() as container:
        await container.events.append([new_event(subject="kept")])
        container.reconfigure("events", box.config("events", "local-jsonl", segment_size=20_000))
        await wait_until(
            lambda: container._lifecycles["events"].serving.cfg.options.segment_size == 20_000,
            "changed over",
        )
        await wait_until(lambda: state(container, "events") == "ok", "open")
        assert "kept" in [event.subject for event in await all_events(container.events)]
        container.reconfigure("beads", box.config("beads", "off"))
        await wait_until(lambda: state(container, "beads") == "off", "off")
        with pytest.raises(AdapterDisabled):
            await container.beads.show("x")
        assert (
            box.metrics.registry.get_sample_value(
                "agentbox_adapter_health", {"slot": "beads", "impl": "local-sqlite"}
            )
            is None
        )
        container.reconfigure("beads", box.config("beads", "local-sqlite"))
        await wait_until(lambda: state(container, "beads") == "ok", "on")
        await container.beads.create_epic(spec())


async def test_calls_in_flight_keep_their_instance(box):
    """Work in progress while the slot is replaced is done, none of it twice."""
    async with box.started() as container:
        creating = [
            asyncio.create_task(container.beads.create_epic(spec(f"{n}", dedup_key=f"{n}")))
            for n in range(200)
        ]
        container.reconfigure("beads", box.config("beads", "local-sqlite", lease_seconds=30))
        found = await asyncio.gather(*creating)
        assert all(created for _, created in found)
        assert len((await container.beads.list(limit=500)).items) == 200


async def test_metrics_say_how_each_slot_is(box):
    """agentbox_adapter_health, agentbox_adapter_state, agentbox_adapter_open_total."""
    async with box.started():
        assert box.metric("agentbox_adapter_health", slot="beads", impl="local-sqlite") == 1
        assert box.metric("agentbox_adapter_health", slot="pods", impl="off") == 2
        assert box.metric("agentbox_adapter_state", slot="beads", state="ready") == 1
        assert box.metric("agentbox_adapter_state", slot="beads", state="down") == 0
        assert (
            box.metric(
                "agentbox_adapter_open_total", slot="beads", impl="local-sqlite", outcome="ok"
            )
            == 1
        )
    assert box.metric("agentbox_adapter_state", slot="beads", state="closed") == 1


async def test_a_stop_during_the_start_leaves_nothing(box):
    """Cancelled while slots are being opened: what was opened is closed, what was not is not opened later."""
    before = set(threading.enumerate())
    container = box.container(uses={"orchestrator": "local-process"})
    starting = asyncio.create_task(container.start())
    await wait_until(lambda: state(container, "beads") == "ok", "beads open")
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await container.stop()
    await wait_until(lambda: set(threading.enumerate()) <= before, "no thread is left")
    other = LocalStore("events", "local-jsonl", box.paths.prefix)
    await (await other.open()).close()


async def test_the_deadline_of_open_is_told_to_the_adapter(box):
    """A Deadline in monotonic time that a test can compare."""
    assert 0.9 < Deadline.after(1).remaining() <= 1
    assert not Deadline.after(1).passed
    assert Deadline.after(-1).passed
