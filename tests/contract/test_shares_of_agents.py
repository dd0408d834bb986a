"""What one agent, and all agents, may fill of a store that the box and its operator use too."""

import uuid

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.beads_common import spec
from agentbox_testkit.local_store import LocalStore

from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.agent_quotas import agents_share
from agentbox.contracts.beads import BeadFilter
from agentbox.contracts.events import NewEvent
from agentbox.core.slot_errors import QuotaExceeded

AGENT = context.CallContext(principal="urn:agentbox:agent:one")
MIB = 1 << 20


@pytest_asyncio.fixture
async def opened(tmp_path, clock):
    """Opens a slot: name, implementation, options."""
    made = []

    async def open_one(slot, impl, **options):
        store = LocalStore(slot, impl, tmp_path / slot, clock=clock, options=options)
        made.append(store)
        return await store.open()

    yield open_one
    for store in made:
        await store.close_all()


async def filled(append):
    """Until it is refused; the refusal."""
    for _ in range(10_000):
        try:
            await append()
        except QuotaExceeded as error:
            return error
    raise AssertionError("nothing refused it")


async def test_agents_fill_a_part_of_the_journal_and_the_box_goes_on(opened):
    """507 for the agent with the key that bounds it; the box still appends, and then what is full can still be read."""
    events = await opened("events", "local-jsonl", max_size=2 * MIB)
    event = NewEvent(type="x.flood", data={"x": "y" * 10_000})
    with context.as_caller(AGENT):
        error = await filled(lambda: events.append([event]))
    assert (error.members["cap"], error.members["config_path"]) == (
        agents_share(2 * MIB),
        "adapters.events.max_size",
    )
    assert events.agent_refusal is not None
    assert (await events.health()).state == "ok"
    (mine,) = await events.append([NewEvent(type="box.goes.on", data={})])
    assert (await events.read(since=mine.seq - 1)).events[0].type == "box.goes.on"
    error = await filled(lambda: events.append([event]))
    assert error.members["cap"] == 2 * MIB
    assert (await events.health()).state == "degraded"
    assert (await events.read(since=-1, limit=1)).events


async def test_agents_fill_a_part_of_the_pods_and_the_operator_writes_on(opened):
    """A quarter for one state, three for all; what is deleted is free again, and the sums survive a restart of the store."""
    pods = await opened("pods", "local-fs", quota=80_000, quota_objects=1000, max_object=10_000)

    async def fill(name):
        numbers = iter(range(1000))
        return await filled(lambda: pods.write(f"state/{name}/{next(numbers)}", b"x" * 5000))

    error = await fill("one")
    assert (error.members["cap"], error.members["config_path"]) == (20_000, "adapters.pods.quota")
    assert "state/one/" in error.message
    await pods.delete("state/one/0")
    await pods.write("state/one/0", b"x" * 5000)
    for name in ("two", "three"):
        assert (await fill(name)).members["cap"] == 20_000
    error = await fill("four")
    assert (error.members["cap"], "all agents" in error.message) == (60_000, True)
    for number in range(4):
        await pods.write(f"of-the-operator/{number}", b"x" * 5000)
    with pytest.raises(QuotaExceeded):
        await pods.write("of-the-operator/5", b"x" * 5000)


async def test_one_agent_has_so_many_open_beads(opened, monkeypatch):
    """Closing beads frees its share; other agents, and the operator, are not delayed."""
    monkeypatch.setattr("agentbox.adapters.beads.sqlite.create.OPEN_BEADS", 5)
    monkeypatch.setattr("agentbox.adapters.beads.sqlite.create.OPEN_BEADS_OF_AGENTS", 8)
    beads = await opened("beads", "local-sqlite")
    error = await filled(lambda: beads.create_epic(spec(creator="urn:agentbox:agent:one")))
    assert (error.members["limit"], error.members["cap"]) == ("open_beads", 5)
    (first, *_) = (await beads.list(BeadFilter(creator="urn:agentbox:agent:one"))).items
    await beads.close_bead(first.id)
    await beads.create_epic(spec(creator="urn:agentbox:agent:one"))
    error = await filled(lambda: beads.create_epic(spec(creator="urn:agentbox:agent:two")))
    assert error.members["cap"] == 8
    await beads.create_epic(spec(creator=f"urn:agentbox:operator:{uuid.uuid4()}"))
