"""One damaged row breaks no listing: it is reported, the rest is listed page by page, and the slot
is degraded."""

from functools import partial

import apsw
import pytest
from agentbox_testkit.clock import ManualClock
from agentbox_testkit.contracts.beads_common import new_lease_id, spec
from agentbox_testkit.local_store import LocalStore

from agentbox.adapters.events.delivery.cursor import DeliveryCursor
from agentbox.contracts.beads import BeadFilter
from agentbox.core.slot_errors import IntegrityError, InvalidTransition


async def pages(listing, limit=2):
    """Every item, so many a page."""
    found, cursor = [], None
    while True:
        page = await listing(limit=limit, cursor=cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


async def noted(adapter):
    """The damaged rows that the log has reported, of a slot that is degraded by them."""
    health, names = await adapter.health(), list(adapter._damaged._names)
    assert (health.state, health.detail.endswith(f"listed in the log: {len(names)}")) == (
        "degraded",
        True,
    )
    return names


@pytest.fixture
async def opened(tmp_path):
    """Creates an open store of a slot."""
    stores = []

    async def made(slot, clock=None):
        stores.append(
            LocalStore(
                slot, "local-fs" if slot == "pods" else "local-sqlite", tmp_path, clock=clock
            )
        )
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
    made = sorted(
        [(await adapter.create_child(epic.id, spec(str(number))))[0].id for number in range(6)]
    )
    filter = BeadFilter(parent_id=epic.id)
    with apsw.Connection(str(store.directory / "beads.db")) as db:
        db.execute(f"UPDATE beads SET {column} = '{{no' WHERE id = ?", (made[at],))
    rest = [one for one in made if one != made[at]]
    assert [bead.id for bead in await pages(partial(adapter.list, filter))] == rest
    assert sorted(bead.id for bead in await pages(adapter.ready)) == rest
    with pytest.raises(IntegrityError, match=f"bead {made[at]}: its row is damaged"):
        await adapter.show(made[at])
    health = await adapter.health()
    assert (health.state, "unreadable rows of beads.db" in health.detail) == ("degraded", True)


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


BAD_UTF8 = "CAST(x'7bff' AS TEXT)"


@pytest.mark.parametrize("column", ["title", "tags", "note"])
async def test_a_bead_whose_text_is_not_utf8(opened, column):
    """SQLite returns such text unchanged: the listing continues, page by page."""
    store, adapter = await opened("beads")
    epic, _ = await adapter.create_epic(spec())
    made = sorted(
        [(await adapter.create_child(epic.id, spec(str(number))))[0].id for number in range(5)]
    )
    with apsw.Connection(str(store.directory / "beads.db")) as db:
        db.execute(f"UPDATE beads SET {column} = {BAD_UTF8} WHERE id = ?", (made[1],))
    rest = [one for one in made if one != made[1]]
    assert [
        bead.id for bead in await pages(partial(adapter.list, BeadFilter(parent_id=epic.id)))
    ] == rest
    assert sorted(bead.id for bead in await pages(adapter.ready)) == rest
    with pytest.raises(IntegrityError, match=f"bead {made[1]}: its row is damaged"):
        await adapter.show(made[1])
    assert (await adapter.health()).state == "degraded"


@pytest.mark.parametrize("damage", ["'{no'", BAD_UTF8])
async def test_a_damaged_bead_holds_up_no_work(opened, damage):
    """The first that is ready, a claimed one whose lease has expired, and a schedule that is due."""
    clock = ManualClock()
    store, adapter = await opened("beads", clock=clock)
    claimed = (await adapter.create_epic(spec("claimed")))[0]
    held = (await adapter.create_child(claimed.id, spec()))[0]
    await adapter.claim(held.id, "w", lease_id=new_lease_id(), lease_s=5)
    schedule, _ = await adapter.create_epic(spec("schedule", every="PT1H"))
    first, sound = [
        (await adapter.create_child(claimed.id, spec(str(number))))[0] for number in range(2)
    ]
    with apsw.Connection(str(store.directory / "beads.db")) as db:
        for one in (held, schedule, first):
            db.execute(f"UPDATE beads SET data = {damage} WHERE id = ?", (one.id,))
    clock.advance(7200)
    assert (await adapter.claim_next("w", lease_id=new_lease_id())).bead.id == sound.id
    assert await adapter.claim_next("w", lease_id=new_lease_id()) is None
    assert (await adapter.ready()).items == ()
    health = await adapter.health()
    assert (health.state, health.detail.endswith("listed in the log: 3")) == ("degraded", True)


@pytest.mark.parametrize(
    ("column", "damage"), [("value", "'{no'"), ("value", BAD_UTF8), ("text", BAD_UTF8)]
)
async def test_a_damaged_entry_is_no_hit(opened, column, damage):
    """A search finds the others."""
    store, adapter = await opened("memory")
    for number in range(3):
        await adapter.store(f"k{number}", {"n": number}, text=f"apples and pears {number}")
    with apsw.Connection(str(store.directory / "memory.db")) as db:
        db.execute(f"UPDATE entries SET {column} = {damage} WHERE key = 'k1'")
    for mode in ("hybrid", "vector", "text"):
        hits = await adapter.search("apples", mode=mode)
        assert sorted(hit.entry.key for hit in hits) == ["k0", "k2"]
    assert [entry.key for entry in await pages(adapter.list)] == ["k0", "k2"]
    with pytest.raises(IntegrityError, match="entry 'k1' of namespace 'default'"):
        await adapter.retrieve("k1")
    assert (await adapter.health()).state == "degraded"


@pytest.mark.parametrize("column", ["content_type", "etag"])
async def test_a_damaged_object(opened, column):
    """The others are listed and read; it and its body stay unchanged."""
    store, adapter = await opened("pods")
    for name in "abcd":
        await adapter.write(f"c/{name}", b"body", content_type="text/plain")
    with apsw.Connection(str(store.directory / "index.db")) as db:
        db.execute(f"UPDATE objects SET {column} = {BAD_UTF8} WHERE path = 'c/b'")
    assert [meta.path for meta in await pages(partial(adapter.list, "c/"))] == ["c/a", "c/c", "c/d"]
    for call in (adapter.read, adapter.head, adapter.delete):
        with pytest.raises(IntegrityError, match="object c/b: its row is damaged"):
            await call("c/b")
    assert (store.directory / "objects/c/b").read_bytes() == b"body"
    assert (await adapter.health()).state == "degraded"


async def test_a_damaged_intent_keeps_no_pods_from_opening(opened):
    """What was under way when the instance died."""
    store, adapter = await opened("pods")
    await adapter.write("a", b"body")
    with apsw.Connection(str(store.directory / "index.db")) as db:
        db.execute(f"INSERT INTO intents VALUES ('i', 0, {BAD_UTF8}, 'write', '', '', '', 0, 0)")
    await store.close_all()
    _, again = await opened("pods")
    assert [meta.path for meta in (await again.list()).items] == ["a"]
    assert (await again.health()).state == "degraded"


@pytest.mark.parametrize("damage", [f"reason = {BAD_UTF8}", "at = 'never'"])
async def test_a_damaged_dead_letter(tmp_path, damage):
    """The others are listed."""
    ledger = DeliveryCursor(tmp_path, "external-http")
    await ledger.open()
    with apsw.Connection(str(tmp_path / "delivery.db")) as db:
        for number in range(3):
            letter = (number, "hash", "id", "type", 422, "why", "2026-01-01T00:00:00.000Z")
            db.execute("INSERT INTO dead VALUES (?, ?, ?, ?, ?, ?, ?)", letter)
        db.execute(f"UPDATE dead SET {damage} WHERE seq = 1")
    assert [letter.seq for letter in await ledger.list_dead_letters(10)] == [2, 0]
    await ledger.close()


BAD_KEY = "CAST(x'ff41' AS TEXT)"


@pytest.mark.parametrize("at", [0, 1, 2, 4])
async def test_a_bead_whose_id_is_not_utf8(opened, at):
    """It is reported in an escaped form, whatever its position; no page repeats or omits another."""
    store, adapter = await opened("beads")
    epic, _ = await adapter.create_epic(spec())
    made = sorted(
        [(await adapter.create_child(epic.id, spec(str(number))))[0].id for number in range(5)]
    )
    with apsw.Connection(str(store.directory / "beads.db")) as db:
        key = f"CAST(CAST(substr(id, 1, {2 * at}) AS BLOB) || {BAD_KEY} AS TEXT)"
        db.execute(f"UPDATE beads SET id = {key} WHERE id = ?", (made[at],))
    rest = [one for one in made if one != made[at]]
    assert [
        bead.id for bead in await pages(partial(adapter.list, BeadFilter(parent_id=epic.id)))
    ] == rest
    for limit in (1, 2, 3):
        assert sorted(bead.id for bead in await pages(adapter.ready, limit)) == rest
    assert await noted(adapter) == [
        f"cannot read bead {made[at][: 2 * at]}\\xffA: its row is damaged"
    ]
    with pytest.raises(InvalidTransition, match="children that are not closed"):
        await adapter.close_bead(epic.id)
    with pytest.raises(IntegrityError, match=r"\\xffA: its row is damaged"):
        await adapter.close_bead(epic.id, outcome="cancelled")


async def test_a_bead_whose_id_is_not_utf8_holds_up_no_work(opened):
    """A claimed one whose lease has expired, a schedule that is due, and the first that is ready."""
    clock = ManualClock()
    store, adapter = await opened("beads", clock=clock)
    epic, _ = await adapter.create_epic(spec())
    held, _ = await adapter.create_child(epic.id, spec("held"))
    await adapter.claim(held.id, "w", lease_id=new_lease_id(), lease_s=5)
    schedule, _ = await adapter.create_epic(spec("schedule", every="PT1H"))
    first, sound = [
        (await adapter.create_child(epic.id, spec(str(number))))[0] for number in range(2)
    ]
    with apsw.Connection(str(store.directory / "beads.db")) as db:
        for number, one in enumerate((held, schedule, first)):
            key = f"CAST(x'ff4{number}' AS TEXT)"
            db.execute(f"UPDATE beads SET id = {key} WHERE id = ?", (one.id,))
    clock.advance(7200)
    assert (await adapter.claim_next("w", lease_id=new_lease_id())).bead.id == sound.id
    assert await adapter.claim_next("w", lease_id=new_lease_id()) is None
    assert (await adapter.ready()).items == ()
    named = {f"cannot read bead \\xff{letter}: its row is damaged" for letter in "@AB"}
    assert set(await noted(adapter)) == named
    with apsw.Connection(str(store.directory / "beads.db")) as db:
        found = list(db.execute("SELECT status FROM beads WHERE CAST(id AS BLOB) = x'ff40'"))
    assert found == [("open",)]


@pytest.mark.parametrize("column", ["key", "namespace"])
async def test_an_entry_whose_key_is_not_utf8(opened, column):
    """Listings, searches and totals have the others; once it has expired it is removed as they are."""
    clock = ManualClock()
    store, adapter = await opened("memory", clock=clock)
    for number in range(5):
        await adapter.store(
            f"k{number}",
            {"n": number},
            text=f"apples and pears {number}",
            ttl_s=60 if number == 1 else None,
        )
    with apsw.Connection(str(store.directory / "memory.db")) as db:
        db.execute(f"UPDATE entries SET {column} = {BAD_KEY} WHERE key = 'k1'")
    rest = ["k0", "k2", "k3", "k4"]
    for limit in (1, 2, 4):
        assert [entry.key for entry in await pages(adapter.list, limit)] == rest
    for mode in ("hybrid", "vector", "text"):
        assert sorted(hit.entry.key for hit in await adapter.search("apples", mode=mode)) == rest
        assert (await adapter.search("apples", mode=mode, limit=1))[0].entry.key in rest
    assert (await adapter.stats()).namespaces == ("default",)
    assert len(await noted(adapter)) == 1
    assert "xffA" in (await noted(adapter))[0]
    clock.advance(61)
    await adapter.store("k5", {"n": 5}, text="apples")
    with apsw.Connection(str(store.directory / "memory.db")) as db:
        assert list(db.execute("SELECT count(*) FROM entries")) == [(5,)]


async def test_an_object_whose_path_is_not_utf8(opened):
    """Its file exists, and so it is listed; that the index lacks it is recorded."""
    store, adapter = await opened("pods")
    for name in "abc":
        await adapter.write(f"c/{name}", b"body", content_type="text/plain")
    with apsw.Connection(str(store.directory / "index.db")) as db:
        db.execute(f"UPDATE objects SET path = {BAD_KEY} WHERE path = 'c/b'")
        db.execute(f"INSERT INTO intents VALUES ({BAD_KEY}, 0, 'c/x', 'write', '', '', '', 0, 0)")
    await store.close_all()
    _, again = await opened("pods")
    assert [meta.path for meta in await pages(partial(again.list, "c/"))] == ["c/a", "c/b", "c/c"]
    assert await noted(again) == [
        f"cannot read {what} \\xffA: its row is damaged" for what in ("intent", "object")
    ]
