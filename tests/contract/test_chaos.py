"""A peer that is killed under load and returns: nothing acknowledged is lost, `/ready` is correct
within 5 s, and nothing is restarted by hand. `bench/chaos.py` is the long form."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from agentbox_testkit.local_store import LocalStore
from chaos import (
    BEADS,
    MEMORY,
    Database,
    box_with,
    harass,
    over_http,
    served_beads,
    survive_a_kill,
)
from chaos_agents import Agents, Bridge, over_bridge
from chaos_sink import away, over_sink, sink_at
from postgres_server import running
from postgres_store import PostgresStore

from agentbox.contracts.beads import BeadSpec
from agentbox.core.slot_errors import SlotUnavailable


@pytest.fixture(scope="module")
def database():
    """A server of its own: it is killed."""
    with running() as server:
        yield server


@pytest.mark.sampled(2)
@pytest.mark.parametrize("load", [BEADS, MEMORY], ids=["beads", "memory"])
async def test_a_database_that_is_killed_loses_nothing(database, tmp_path, load):
    """PostgreSQL, ended as by a crash."""
    with box_with(
        tmp_path, load.slot, "external-pg", {"dsn": database.dsn()}, schema=f"chaos_{load.slot}"
    ) as box:
        await survive_a_kill(box, load, Database(database))


async def test_an_api_that_is_killed_loses_nothing(tmp_path):
    """Another box, by SIGKILL. An interrupted create is not repeated."""
    with served_beads(tmp_path / "peer") as peer, over_http(tmp_path / "box", peer) as box:
        await survive_a_kill(box, BEADS, peer)
        with peer.client() as client:
            stored = client.call("list_beads", query={"limit": 500})["items"]
    # After 5 s each of the two boxes has an epic for its tasks, of the same title.
    titles = Counter(bead["title"] for bead in stored if bead["title"] != "tasks")
    assert [title for title, count in titles.items() if count > 1] == []


@pytest.mark.timed  # an append with the sink is compared with one without it
async def test_V14_a_sink_that_is_killed_refuses_and_slows_nothing_and_gets_everything_once(
    tmp_path,
):
    """Another box, by SIGKILL, away for a second: `ok` is the truth meanwhile, for no record waits for a minute."""
    with sink_at(tmp_path / "sink") as sink, over_sink(tmp_path / "box", sink) as box:
        out = await away(box, sink, kills=1, up=1.0, down=1.0, writers=4)
    assert out.wrong(share=0.5) == []
    assert out.acknowledged
    assert out.behind > 1  # the sink was missed


@pytest.mark.timed  # the child of a slot opens within 10 s, at low priority
async def test_O17_a_bridge_that_is_killed_runs_no_request_twice(tmp_path):
    """The child of a required slot, by SIGKILL: typed errors, named in `missing`, recovers by
    itself; each end is reported once, and what ran is `lost` at every later request."""
    with over_bridge(tmp_path) as box, box.client() as client:
        agents = Agents(box)
        spec = {"name": "long", "argv": ["sleep", "1000"], "profile": "sandboxed"}
        long = client.agents.spawn(spec, request_id="long")
        out = await harass(box, agents.load, Bridge(box), kills=1, up=1.0, down=0, writers=4)
        again = client.agents.spawn(spec, request_id="long")
        assert (again.agent_id, again.state, again.exit.reason) == (long.agent_id, "lost", "lost")
        assert not Path(f"/proc/{long.pid}").exists()
    assert agents.wrong(out) == []
    assert out.refused
    assert "exit" in agents.ends.values()


async def test_a_call_that_a_close_cuts_off_has_a_type(database, tmp_path):
    """It waits for a lock when the slot fails: it gets the error that the store is closed, and its
    caller was not cancelled."""
    store = PostgresStore("beads", database, tmp_path, {}).with_secrets(dsn=database.dsn())
    adapter = await LocalStore.open(store)
    with store.session() as holder, holder.transaction():
        holder.execute("LOCK TABLE beads")
        call = asyncio.create_task(adapter.create_epic(BeadSpec(title="x", creator="y")))
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while holder.execute(waiting).fetchone() == (0,):
            await asyncio.sleep(0.01)
        await adapter.close()
        with pytest.raises(SlotUnavailable):
            await call
    assert (await (await LocalStore.open(store)).list()).items == ()
    await store.remove()
