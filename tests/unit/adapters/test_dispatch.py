"""The pipeline around every call."""

import asyncio
from contextlib import contextmanager

import pytest
from agentbox_testkit.contracts.beads_common import LEASE, make_task, spec
from agentbox_testkit.contracts.events_common import all_events, new_event
from agentbox_testkit.wait import wait_until

from agentbox.adapters.runtime.context import CallContext, as_caller
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.contracts.slot_operations import METHODS
from agentbox.core.deadline import Deadline
from agentbox.core.slot_errors import (
    AdapterDisabled,
    AdapterTimeout,
    NotFound,
    SlotUnavailable,
    ValidationError,
)


class Recorder:
    """Spans stored in a list."""

    def __init__(self):
        self.spans = []

    @contextmanager
    def span(self, name, attributes):
        kept = dict(attributes)
        self.spans.append((name, kept))
        yield type("Span", (), {"set": lambda _, key, value: kept.__setitem__(key, value)})()


async def test_a_proxy_has_the_methods_of_the_contract_and_nothing_else(box):
    """No open, no close, no health."""
    container = box.container()
    for slot, specs in METHODS.items():
        names = [name for name in dir(getattr(container, slot)) if not name.startswith("_")]
        assert sorted(names) == sorted(spec.name for spec in specs)
    await container.stop()


async def test_calls_are_counted_by_outcome(box):
    """And timed; a stream counts its items."""
    async with box.started() as container:
        await container.beads.create_epic(spec())
        with pytest.raises(NotFound):
            await container.beads.show("x")
        bead = await make_task(container.beads)
        await container.beads.claim(bead.id, "w", lease_id=LEASE)
        stream = container.events.subscribe(since=-1)
        await anext(stream)
        await stream.aclose()

        def count(slot, method, impl, outcome):
            return box.metric(
                "agentbox_adapter_dispatch_total",
                slot=slot,
                method=method,
                impl=impl,
                outcome=outcome,
            )

        assert count("beads", "create_epic", "local-sqlite", "ok") == 2
        assert count("beads", "show", "local-sqlite", "not_found") == 1
        assert (
            box.metric(
                "agentbox_adapter_duration_seconds_count",
                slot="beads",
                method="claim",
                impl="local-sqlite",
            )
            == 1
        )
        assert (
            box.metric("agentbox_adapter_stream_items_total", slot="events", method="subscribe")
            == 1
        )


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        (lambda c, b: c.beads.show("x"), "not_found"),
        (lambda c, b: c.beads.create_epic(spec("a\0")), "invalid"),
        (lambda c, b: c.beads.heartbeat(b.id, LEASE), "conflict"),
        (lambda c, b: c.pods.head("x"), "disabled"),
        (lambda c, b: c.events.read(since=-1, limit=0), "invalid"),
    ],
)
async def test_outcomes(box, call, outcome):
    """The outcome label of each kind of failure."""
    async with box.started() as container:
        bead = await make_task(container.beads)
        with pytest.raises(Exception):  # noqa: B017 - which one is told by the outcome
            await call(container, bead)
        found = [
            s
            for m in box.metrics.dispatch.collect()
            for s in m.samples
            if s.labels.get("outcome") == outcome
        ]
        assert [s.value for s in found if s.name.endswith("_total")] == [1]


async def test_spans_say_who_and_what_but_no_argument(box):
    """Name, implementation, request, agent, session, trace, and the error's code."""
    recorder = Recorder()
    context = CallContext(request_id="r", agent_id="a", session_id="s", trace_id="t")
    async with box.started(spans=recorder) as container:
        with as_caller(context), pytest.raises(NotFound):
            await container.beads.show("a-secret-argument")
    name, attributes = next(item for item in recorder.spans if item[0].endswith("show"))
    assert name == "agentbox.adapter.beads.show"
    assert attributes == {
        "agentbox.request_id": "r", "agentbox.agent_id": "a", "agentbox.session_id": "s", "agentbox.trace_id": "t",
        "adapter.impl": "local-sqlite", "error.type": "not-found",
    }  # fmt: skip


async def test_the_smaller_deadline_holds(box):
    """The caller's deadline; the call ends with AdapterTimeout, and the slot is checked."""
    async with box.started() as container:
        bead = await make_task(container.beads)
        with (
            as_caller(CallContext(deadline=Deadline.after(-1))),
            pytest.raises(AdapterTimeout) as caught,
        ):
            await container.beads.show(bead.id)
        assert (caught.value.members["slot"], caught.value.members["method"]) == ("beads", "show")
        assert await container.beads.show(bead.id) == bead


async def test_writes_are_journalled(box):
    """slot.write with method, id, outcome and a digest of the arguments; heartbeats, reads and empty turns are not."""
    async with box.started() as container:
        bead = await make_task(container.beads)
        await container.beads.claim(bead.id, "w", lease_id=LEASE)
        await container.beads.heartbeat(bead.id, LEASE)
        await container.beads.list()
        assert await container.beads.claim_next("w", lease_id=LEASE.replace("1", "2")) is None
        with pytest.raises(NotFound):
            await container.beads.close_bead("nobody")
        written = [
            event.data for event in await all_events(container.events) if event.type == "slot.write"
        ]
    assert [(d["method"], d["id"], d["outcome"]) for d in written] == [
        ("create_epic", bead.parent_id, "ok"),
        ("create_child", bead.id, "ok"),
        ("claim", bead.id, "ok"),
        ("close_bead", "nobody", "not_found"),
    ]
    assert {len(data["args_sha256"]) for data in written} == {64}
    assert LEASE not in str(written)


async def test_a_write_succeeds_while_the_journal_is_down(box):
    """What could not be journalled is counted."""
    async with box.started(uses={"events": "local-jsonl"}) as container:
        await container._lifecycles["events"].stop()
        bead, _ = await container.beads.create_epic(spec())
        assert await container.beads.show(bead.id) == bead
        assert box.metric("agentbox_journal_lost_total", reason="slot-unavailable") == 1


async def test_what_no_adapter_was_asked_is_not_journalled(box):
    """A slot that is off or down writes nothing, so there is nothing to journal."""
    async with box.started(uses={"beads": "off"}) as container:
        with pytest.raises(AdapterDisabled):
            await container.beads.create_epic(spec())
        await container.journal.drain()
        assert [event.type for event in await all_events(container.events)] == ["slot.ready"]


async def test_a_journal_that_is_off_is_skipped(box):
    """Nothing is lost, since nothing was requested."""
    async with box.started(uses={"events": "off"}) as container:
        await container.beads.create_epic(spec())
        assert await container.journal.record("test.thing", {}) is None
        assert box.metric("agentbox_journal_lost_total", reason="adapter-disabled") == 0


async def test_a_spawn_is_announced_before_it_is_tried(box):
    """agent.spawn.requested is journalled although the orchestrator is down; it has no argument and
    no variable."""
    wanted = AgentSpec(name="n", argv=("run", "argument"), profile="p", env={"KEY": "value"})
    async with box.started(uses={"orchestrator": "local-process"}) as container:
        with pytest.raises(SlotUnavailable):
            await container.orchestrator.spawn(wanted, request_id="r")
        (event,) = [
            e for e in await all_events(container.events) if e.type == "agent.spawn.requested"
        ]
    assert event.data == {
        "method": "spawn",
        "name": "n",
        "profile": "p",
        "request_id": "r",
        "parent_id": None,
    }


async def test_a_required_journal_that_cannot_append_refuses_the_spawn(box):
    """The orchestrator is not called."""
    async with box.started(
        uses={"orchestrator": "local-process"}, required=("events",)
    ) as container:
        await container._lifecycles["events"].stop()
        with pytest.raises(SlotUnavailable) as caught:
            await container.orchestrator.spawn(
                AgentSpec(name="n", argv=("x",), profile="p"), request_id="r"
            )
        assert caught.value.members["slot"] == "events"


async def test_a_cancelled_caller_still_leaves_a_record(box):
    """A completed write is journalled, whether or not its caller waited."""
    async with box.started() as container:
        tasks = [
            asyncio.create_task(container.beads.create_epic(spec(dedup_key=f"{n}")))
            for n in range(50)
        ]
        for turn, task in enumerate(tasks):
            if turn % 5 == 0:
                await asyncio.sleep(0.001)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        done = sum(task.done() and not task.cancelled() for task in tasks)
        await container.journal.drain()
        written = [
            event for event in await all_events(container.events) if event.type == "slot.write"
        ]
        assert len(written) >= done


async def test_events_recorded_before_the_journal_is_open_are_kept(box):
    """In their order, once it is."""
    container = box.container()
    for number in range(3):
        assert await container.journal.record("boot.thing", {"n": number}) is None
    await container.start()
    found = [
        event.data["n"]
        for event in await all_events(container.events)
        if event.type == "boot.thing"
    ]
    await container.stop()
    assert found == [0, 1, 2]


async def test_a_subscriber_through_the_proxy_misses_nothing(box):
    """From now means from the call."""
    async with box.started() as container:
        stream = container.events.subscribe()
        sent = [(await container.events.append([new_event(subject=f"{n}")]))[0] for n in range(5)]
        assert [await anext(stream) for _ in range(5)] == sent
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        await container.stop()
        await wait_until(waiting.done, "told")
        assert isinstance(waiting.exception(), SlotUnavailable)


async def test_deep_nesting_is_a_validation_error(box):
    """No crash of the walk: neither for the sender nor for the process."""
    deep = []
    for _ in range(5000):
        deep = [deep]
    async with box.started(
        privacy={"enabled": True, "policy": {"beads": "soft", "events": "soft"}}
    ) as container:
        with pytest.raises(ValidationError):
            await container.beads.create_epic(spec(data={"x": deep}))
        with pytest.raises(ValidationError):
            await container.events.append([new_event(data={"x": deep})])
