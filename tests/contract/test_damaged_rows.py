"""One damaged row breaks no listing: it is named, the rest is listed page by page, and the slot is degraded."""

from functools import partial

import apsw
import pytest

from agentbox.adapters.beads.contract import BeadFilter
from agentbox.adapters.errors import IntegrityError
from agentbox.testing.contracts.beads_common import spec
from agentbox.testing.local_store import LocalStore


async def pages(listing):
    """Every item, two a page."""
    found, cursor = [], None
    while True:
        page = await listing(limit=2, cursor=cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.fixture
async def opened(tmp_path):
    """Makes an open store of a slot."""
    stores = []

    async def made(slot):
        stores.append(LocalStore(slot, "local-sqlite", tmp_path))
        return stores[-1], await stores[-1].open()

    yield made
    for store in stores:
        await store.close_all()


@pytest.mark.parametrize("column", ["data", "tags", "result"])
@pytest.mark.parametrize("at", [0, 1, 2, 5])
async def test_a_damaged_bead(opened, column, at):
    """Wherever it stands in a page; itself it is an integrity error by its id."""
    store, adapter = await opened("beads")
    epic, _ = await adapter.create_epic(spec())
    made = sorted([(await adapter.create_child(epic.id, spec(str(number))))[0].id for number in range(6)])
    flt = BeadFilter(parent_id=epic.id)
    with apsw.Connection(str(store.directory / "beads.db")) as db:
        db.execute(f"UPDATE beads SET {column} = '{{no' WHERE id = ?", (made[at],))
    rest = [one for one in made if one != made[at]]
    assert [bead.id for bead in await pages(partial(adapter.list, flt))] == rest
    assert sorted(bead.id for bead in await pages(adapter.ready)) == rest
    with pytest.raises(IntegrityError, match=f"bead {made[at]}: its row is damaged"):
        await adapter.show(made[at])
    health = await adapter.health()
    assert (health.state, "rows of beads.db cannot be read" in health.detail) == ("degraded", True)


@pytest.mark.parametrize("column", ["value", "metadata"])
async def test_a_damaged_entry(opened, column):
    """The same for memory."""
    store, adapter = await opened("memory")
    for number in range(5):
        await adapter.store(f"k{number}", {"n": number})
    with apsw.Connection(str(store.directory / "memory.db")) as db:
        db.execute(f"UPDATE entries SET {column} = '{{no' WHERE key = 'k1'")
    assert [entry.key for entry in await pages(adapter.list)] == ["k0", "k2", "k3", "k4"]
    with pytest.raises(IntegrityError, match="entry 'k1' of namespace 'default'"):
        await adapter.retrieve("k1")
    assert (await adapter.health()).state == "degraded"
