"""Vectors in memory change no result (M12): every search is compared with a scan of every vector by
sqlite-vec."""

import random

import pytest
import pytest_asyncio
from agentbox_testkit.local_store import LocalStore
from memory_fill import texts

from agentbox.adapters.memory.sqlite import search, vector_index

LINES = texts(600, seed=3)


@pytest_asyncio.fixture
async def store(tmp_path):
    made = LocalStore("memory", "local-sqlite", tmp_path)
    yield made
    await made.close_all()


class Counted:
    """How often candidates were enough, and how often all had to be compared."""

    def __init__(self, monkeypatch):
        self.few = self.all = 0
        measured = search._measure

        def counting(db, asked, most, among):
            if among is None:
                self.all += 1
            else:
                self.few += 1
            return measured(db, asked, most, among)

        monkeypatch.setattr(search, "_measure", counting)


async def same_as_a_scan(adapter, monkeypatch, query, **how):
    """The hits, which are those of a scan, in its order and with its scores."""
    found = await adapter.search(query, **how)
    with monkeypatch.context() as without:
        without.setattr(vector_index.VectorIndex, "candidates", lambda *_arguments: None)
        assert found == await adapter.search(query, **how)
    return found


HOWS = (
    {"mode": "vector"}, {"mode": "hybrid", "limit": 3}, {"mode": "vector", "namespaces": ("two",)},
    {"mode": "vector", "namespaces": ("default", "two", "none"), "limit": 40}, {"mode": "vector", "filter": {"n": {"lt": 6}}},
    {"mode": "vector", "filter": {"n": {"gte": 100}}}, {"mode": "vector", "min_cosine": 0.6}, {"mode": "hybrid", "min_cosine": -1},
)  # fmt: skip


async def test_M12_after_any_writes_of_two_boxes_the_ranking_is_that_of_a_scan(store, monkeypatch):
    """Stores, overwrites, deletes and twins, some by another instance on the same file."""
    ours, theirs, draw = await store.open(), await store.open(), random.Random(5)
    for n, line in enumerate(LINES):
        twin = LINES[n // 2] if n % 5 == 0 else line
        where = "two" if n % 3 == 0 else "default"
        await (ours if n % 2 else theirs).store(
            f"{n}", None, text=twin, namespace=where, metadata={"n": n}
        )
    for how in HOWS:
        assert await same_as_a_scan(ours, monkeypatch, texts(1, seed=9)[0], **how)
    counted = Counted(monkeypatch)
    for turn in range(60):
        box, key = (ours, theirs)[draw.random() < 0.4], f"{draw.randrange(620)}"
        where = "two" if int(key) % 3 == 0 else "default"
        if draw.random() < 0.3:
            await box.delete(key, namespace=where)
        else:
            await box.store(
                key, None, text=draw.choice(LINES), namespace=where, metadata={"n": int(key)}
            )
        reader = (ours, theirs)[turn % 2]
        await same_as_a_scan(reader, monkeypatch, draw.choice(LINES), **HOWS[turn % len(HOWS)])
    assert counted.few > 60


async def test_M12_a_number_that_is_used_again_is_another_entry(store, monkeypatch):
    """SQLite reuses the number of the last entry once that is deleted."""
    adapter = await store.open()
    for n in range(300):
        await adapter.store(f"{n}", LINES[n])
    for line in LINES[300:310]:
        await adapter.store("last", line)
        (hit, *_others) = await same_as_a_scan(adapter, monkeypatch, line, mode="vector")
        assert (hit.entry.key, hit.entry.text) == ("last", line)
        await adapter.delete("last")
        assert "last" not in [
            one.entry.key for one in await same_as_a_scan(adapter, monkeypatch, line, mode="vector")
        ]


async def test_M12_alike_ones_are_ordered_by_key(store, monkeypatch):
    """500 equal vectors: no candidate is nearer than the rest, so all are compared."""
    adapter = await store.open()
    for n in range(500):
        await adapter.store(f"{n:03}", "a whale")
    counted = Counted(monkeypatch)
    found = await same_as_a_scan(adapter, monkeypatch, "whale", mode="vector", limit=5)
    assert [hit.entry.key for hit in found] == ["000", "001", "002", "003", "004"]
    assert counted.all


@pytest.mark.parametrize("most", [0, 100])
async def test_M12_a_store_too_large_to_hold_is_scanned(store, monkeypatch, most):
    """The answer is the same, also when it becomes so large while it is open."""
    monkeypatch.setattr(vector_index, "MAX_VECTORS", most)
    monkeypatch.setattr(vector_index, "_CHUNK", 16)
    adapter = await store.open()
    for n in range(140):
        await adapter.store(f"{n}", LINES[n])
        if n in (50, 139):
            (hit, *_others) = await adapter.search(LINES[n], mode="vector")
            assert hit.entry.key == f"{n}"
    vectors = adapter._vector_index
    assert vectors._snapshot is None


async def test_M12_a_snapshot_behind_another_reader_sees_its_own(store):
    """Vectors added after a snapshot are not part of it."""
    adapter = await store.open()
    await adapter.store("k", "a whale")
    (hit,) = await adapter.search("whale", mode="vector")
    (vector,) = await (await adapter._embedder.get()).embed(["whale"])

    def behind(db):
        db.execute("SELECT * FROM stamps").fetchall()  # the snapshot begins here
        adapter._db.write_blocking(
            lambda writer: writer.execute("UPDATE stamps SET last = last + 1")
        )
        newer = adapter._db.read_blocking(
            lambda other: adapter._vector_index.candidates(other, vector, ("default",), 4)
        )
        return newer, adapter._vector_index.candidates(db, vector, ("default",), 4)

    newer, ours = await adapter._db.read(behind)
    assert len(newer.entries) == 1
    assert ours is None
    assert hit.entry.key == "k"
