"""Words in memory change no result of external-pg (M7): each search is compared with PostgreSQL's
own ranking."""

import asyncio
import random

import pytest
import pytest_asyncio
from memory_fill import texts
from postgres_store import PostgresStore, ServerClock

from agentbox.adapters.memory import postings
from agentbox.adapters.memory.postgres import word_index

LINES = texts(300, seed=3)
HOWS = (
    {"mode": "text"}, {"mode": "text", "namespaces": ("two",)}, {"mode": "text", "filter": {"n": {"lt": 6}}},
    {"mode": "text", "namespaces": ("default", "two", "none"), "limit": 40}, {"mode": "text", "min_cosine": 0.6},
)  # fmt: skip


@pytest_asyncio.fixture
async def store(postgres, tmp_path):
    ServerClock(postgres)
    made = PostgresStore("memory", postgres, tmp_path, {})
    yield made
    await made.remove()


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
    """How many hits; they are those of PostgreSQL, in its order."""
    found = await adapter.search(query, **how)

    async def nothing(*_arguments):
        return None

    with monkeypatch.context() as without:
        without.setattr(word_index.PgWordIndex, "rank", nothing)
        scanned = await adapter.search(query, **how)
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in scanned], abs=1e-6)
    assert [hit.entry.key for hit in found] == [hit.entry.key for hit in scanned]
    return len(found)


@pytest.mark.timeout(120)
async def test_M07_after_any_writes_of_two_boxes_the_words_are_those_of_the_store(
    store, monkeypatch, builds
):
    """Stores, overwrites and deletes, some by another instance on the same schema."""
    ours, theirs, draw = await store.open(), await store.open(), random.Random(5)

    async def one(n, box):
        await box.store(
            f"{n}",
            None,
            text=LINES[n],
            namespace="two" if n % 3 == 0 else "default",
            metadata={"n": n},
        )

    await asyncio.gather(*(one(n, (ours, theirs)[n % 2]) for n in range(len(LINES))))
    hits = 0
    for turn in range(30):
        await asyncio.gather(
            *(
                one(draw.randrange(len(LINES)), (ours, theirs)[draw.random() < 0.4])
                for _ in range(3)
            )
        )
        await ours.delete(f"{draw.randrange(300)}", namespace=draw.choice(("default", "two")))
        query = f"{draw.choice(LINES)} bread_flour the Bread breads"
        hits += await same_as_sql(
            (ours, theirs)[turn % 2], monkeypatch, query, **HOWS[turn % len(HOWS)]
        )
    assert hits > 200
    assert len(builds) == 2


async def test_M07_what_is_committed_late_is_found(store, builds):
    """By a transaction that took its number first: another one committed, and was searched, before it."""
    adapter = await store.open()
    await adapter.store("first", "a whale")
    with store.session() as late:
        late.execute("BEGIN")
        late.execute(
            "INSERT INTO entries (namespace, key, value, text, metadata, bytes, created_at, updated_at, words) "
            "VALUES ('default', 'late', '1', 'whale', '{}', 5, 0, 0, to_tsvector('english', 'whale'))"
        )
        await adapter.store("soon", "a whale")
        assert len(await adapter.search("whale", mode="text")) == 2
        late.execute("COMMIT")
    assert {hit.entry.key for hit in await adapter.search("whale", mode="text")} == {
        "first",
        "soon",
        "late",
    }
    assert len(builds) == 1


async def test_M07_what_was_changed_too_long_ago_is_read_anew(store, monkeypatch, builds):
    """The schema remembers its last changes only."""
    adapter = await store.open()
    await adapter.store("first", "a whale")
    assert len(await adapter.search("whale", mode="text")) == 1
    for n in range(6):
        await adapter.store(f"{n}", "a whale")
    monkeypatch.setattr(word_index, "_MAX_CHANGES", 2)
    await adapter._remove_expired()
    with store.session() as db:
        assert db.execute("SELECT count(*) FROM changes").fetchone() == (3,)
    assert len(await adapter.search("whale", mode="text")) == 7
    assert len(builds) == 2
    await adapter.delete("0")
    assert len(await adapter.search("whale", mode="text")) == 6
    assert len(builds) == 2


async def test_M07_a_store_too_large_to_hold_is_searched_by_sql(store, monkeypatch, builds):
    """With the same result."""
    monkeypatch.setattr(word_index, "MAX_ENTRIES", 2)
    adapter = await store.open()
    for n in range(4):
        await adapter.store(f"{n}", "a whale")
        assert len(await adapter.search("whale", mode="text")) == n + 1
        assert (adapter._word_index._snapshot is None) == (n >= 2)
    assert len(builds) == 1


async def test_M07_a_search_that_is_cancelled_leaves_nothing_half_read(store, monkeypatch, builds):
    """The next one reads anew."""
    adapter, reached = await store.open(), asyncio.Event()
    await adapter.store("k", "a whale")

    async def stuck(*_arguments):
        reached.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as broken:
        broken.setattr(word_index, "_read_postings", stuck)
        search = asyncio.ensure_future(adapter.search("whale", mode="text"))
        await reached.wait()
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
    assert len(await adapter.search("whale", mode="text")) == 1
    assert len(builds) == 2
