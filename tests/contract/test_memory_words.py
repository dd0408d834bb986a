"""Words in memory change no result (M7, M12): every search is compared with one that SQLite
computes entry by entry."""

import random

import apsw
import pytest
import pytest_asyncio
from agentbox_testkit.local_store import LocalStore
from memory_fill import texts

from agentbox.adapters.memory import postings
from agentbox.adapters.memory.sqlite import word_index

LINES = texts(400, seed=3)
HOWS = (
    {"mode": "text"}, {"mode": "hybrid", "limit": 3}, {"mode": "text", "namespaces": ("two",)},
    {"mode": "text", "namespaces": ("default", "two", "none"), "limit": 40}, {"mode": "text", "filter": {"n": {"lt": 6}}},
    {"mode": "text", "filter": {"n": {"gte": 100}}}, {"mode": "text", "min_cosine": 0.6}, {"mode": "text", "limit": 100},
)  # fmt: skip


@pytest_asyncio.fixture
async def store(tmp_path, clock):
    made = LocalStore("memory", "local-sqlite", tmp_path, clock=clock)
    yield made
    await made.close_all()


@pytest.fixture
def builds(monkeypatch):
    """One for each time that all entries were read."""
    made = []

    class Counted(postings.Postings):
        def __init__(self):
            super().__init__()
            made.append(self)

    monkeypatch.setattr(postings, "Postings", Counted)
    return made


async def same_as_sql(adapter, monkeypatch, query, **how):
    """The hits, which are those that SQL finds, in its order and with its scores."""
    found = await adapter.search(query, **how)
    with monkeypatch.context() as without:
        without.setattr(word_index.SqliteWordIndex, "rank", lambda *_arguments: None)
        assert found == await adapter.search(query, **how)
    return found


async def test_M12_after_any_writes_of_two_boxes_the_words_are_those_of_the_store(
    store, clock, monkeypatch, builds
):
    """Stores, overwrites, deletes, twins, phrases and expiries, some by another instance on the same file."""
    ours, theirs, draw = await store.open(), await store.open(), random.Random(5)
    for n, line in enumerate(LINES):
        where = "two" if n % 3 == 0 else "default"
        twin = f"{LINES[n // 2]} Bread_Flour bread" if n % 5 == 0 else line
        await (ours if n % 2 else theirs).store(
            f"{n}", None, text=twin, namespace=where, metadata={"n": n}
        )
    for turn in range(80):
        box, key = (ours, theirs)[draw.random() < 0.4], f"{draw.randrange(420)}"
        where = "two" if int(key) % 3 == 0 else "default"
        if draw.random() < 0.3:
            await box.delete(key, namespace=where)
        else:
            ttl = draw.choice((None, None, 5))
            await box.store(
                key,
                None,
                text=draw.choice(LINES),
                namespace=where,
                metadata={"n": int(key)},
                ttl_s=ttl,
            )
        clock.advance(0.5)
        query = f"{draw.choice(LINES)} bread_flour Bread bread"
        assert await same_as_sql(
            (ours, theirs)[turn % 2], monkeypatch, query, **HOWS[turn % len(HOWS)]
        )
    assert len(builds) == 2


async def test_M12_a_number_that_is_used_again_has_the_new_words_only(store, monkeypatch, builds):
    """SQLite reuses the number of the last entry once that is deleted."""
    adapter = await store.open()
    for n in range(50):
        await adapter.store(f"{n}", "a whale")
    for word in ("river", "mountain", "river", "harbour"):
        await adapter.store("last", f"{word} whale")
        (hit,) = await same_as_sql(adapter, monkeypatch, f"{word} mountain", mode="text")
        assert hit.entry.key == "last"
        await adapter.delete("last")
        assert await same_as_sql(adapter, monkeypatch, word, mode="text") == ()
    assert len(builds) == 1


async def test_M12_what_was_changed_too_long_ago_is_read_anew(store, monkeypatch, builds):
    """The store remembers its last changes only; a word that is far behind is read again."""
    adapter = await store.open()
    await adapter.store("first", "river")
    assert len(await same_as_sql(adapter, monkeypatch, "river", mode="text")) == 1
    for n in range(5):
        await adapter.store(f"{n}", "river")
    db = apsw.Connection(str(store.directory / "memory.db"))
    db.execute("DELETE FROM changes WHERE stamp < 4")
    db.close()
    assert len(await same_as_sql(adapter, monkeypatch, "river", mode="text")) == 6
    assert len(builds) == 2
    monkeypatch.setattr(postings, "_MAX_LOG", 3)
    for n in range(5, 9):
        await adapter.store(f"{n}", "river")
    assert len(await same_as_sql(adapter, monkeypatch, "river", mode="text")) == 10
    assert len(builds) == 2


async def test_M12_the_store_remembers_a_bounded_number_of_changes(store):
    """10,000; the numbers continue."""
    adapter = await store.open()
    await adapter.store("k", "v")
    await store.close_all()
    db = apsw.Connection(str(store.directory / "memory.db"))
    db.execute("INSERT INTO changes VALUES (20000, 1)")
    db.close()
    adapter = await store.open()
    await adapter.store("k", "w")
    db = apsw.Connection(str(store.directory / "memory.db"))
    assert db.execute("SELECT stamp FROM changes ORDER BY 1").fetchall() == [
        (20000,),
        (20001,),
        (20002,),
    ]
    db.close()


async def test_M12_words_are_held_while_there_is_room(store, monkeypatch):
    """The least recently used one is dropped first."""
    monkeypatch.setattr(postings, "MAX_POSTINGS", 2 * postings.WORD_OVERHEAD + 25)
    adapter = await store.open()
    for n in range(10):
        await adapter.store(f"{n}", "river mountain harbour")
    for query in ("river mountain", "river", "harbour", "river mountain harbour"):
        assert len(await same_as_sql(adapter, monkeypatch, query, mode="text")) == 10
        held = adapter._word_index._snapshot.postings
        assert (
            held._cached_count
            == sum(postings.WORD_OVERHEAD + len(word.positions) for word in held._words.values())
            <= postings.MAX_POSTINGS
        )


async def test_M12_a_store_too_large_to_hold_is_searched_by_sql(store, monkeypatch):
    """With the same result, also when it becomes so large while it is open."""
    monkeypatch.setattr(word_index, "MAX_ENTRIES", 5)
    adapter = await store.open()
    for n in range(8):
        await adapter.store(f"{n}", LINES[n])
        (hit, *_others) = await adapter.search(LINES[n], mode="text")
        assert hit.entry.key == f"{n}"
        assert (adapter._word_index._snapshot is None) == (n >= 5)


async def test_M12_a_snapshot_behind_another_reader_sees_its_own(store):
    """Words added after a snapshot are not part of it."""
    adapter = await store.open()
    await adapter.store("k", "a whale")

    def behind(db):
        db.execute("SELECT * FROM changes").fetchall()  # the snapshot begins here
        adapter._db.write_blocking(
            lambda writer: writer.execute("INSERT INTO changes (entry) VALUES (99)")
        )
        asked = (['"whale"'], ("default",), 0)
        return adapter._db.read_blocking(
            lambda other: adapter._word_index.rank(other, *asked)
        ), adapter._word_index.rank(db, *asked)

    newer, ours = await adapter._db.read(behind)
    assert newer.entries.tolist() == [1]
    assert ours is None


async def test_M12_who_searches_no_words_holds_none(store):
    """An idle box pays nothing."""
    adapter = await store.open()
    await adapter.store("k", "a whale")
    await adapter.search("whale", mode="vector")
    assert adapter._word_index._snapshot is None
