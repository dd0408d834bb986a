"""A peer that is killed under load and comes back: nothing acknowledged is lost, `/ready` tells the truth within 5 s, and nobody
restarts anything. `bench/chaos.py` is the long form."""

import pytest
from chaos import BEADS, MEMORY, Database, box_with, harass, over_http, served_beads
from postgres_server import running


@pytest.fixture(scope="module")
def database():
    """A server of its own: it is killed."""
    with running() as server:
        yield server


async def tried(box, load, peer):
    out = await harass(box, load, peer, kills=1, up=1.0, down=0.5, writers=4)
    assert out.wrong() == []
    assert out.acknowledged
    assert out.refused  # the peer was missed, and every refusal had a type
    return out


@pytest.mark.parametrize("load", [BEADS, MEMORY], ids=["beads", "memory"])
async def test_a_database_that_is_killed_loses_nothing(database, tmp_path, load):
    """PostgreSQL, ended as by a crash."""
    with box_with(tmp_path, load.slot, "external-pg", {"dsn": database.dsn()}, schema=f"chaos_{load.slot}") as box:
        await tried(box, load, Database(database))


async def test_an_api_that_is_killed_loses_nothing(tmp_path):
    """Another box, by SIGKILL. A create that was cut off is not made twice."""
    with served_beads(tmp_path / "peer") as peer, over_http(tmp_path / "box", peer) as box:
        await tried(box, BEADS, peer)
        with peer.client() as client:
            titles = [bead["title"] for bead in client.call("list_beads", query={"limit": 500})["items"]]
        assert len(titles) == len(set(titles))
