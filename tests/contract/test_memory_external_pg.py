"""memory external-pg meets the contract of the slot against a real PostgreSQL with pgvector, and
its own clauses (M13, M14)."""

import asyncio

import psycopg
import pytest
import pytest_asyncio
from agentbox_testkit.contracts.memory import OPTIONS, MemoryContract
from memory_fill import fill, texts
from postgres_store import PostgresStore, ServerClock

from agentbox.adapters.memory.embedder import load_embedder
from agentbox.adapters.memory.postgres.rows import vector_text
from agentbox.core.deadline import Deadline
from agentbox.core.slot_errors import BackendError, IntegrityError, ModelMismatch


@pytest.fixture
def clock(postgres):
    return ServerClock(postgres)


@pytest_asyncio.fixture
async def store(postgres, clock, tmp_path):
    made = PostgresStore("memory", postgres, tmp_path, OPTIONS)
    yield made
    await made.remove()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


@pytest.fixture
def plain_role(postgres):
    """The connection string of a role without rights beyond its own database, which has no extension."""
    with psycopg.connect(postgres.dsn("postgres"), autocommit=True) as db:
        db.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
        db.execute("CREATE DATABASE plain OWNER plain")
    yield postgres.dsn("plain").replace(f"agentbox:{postgres.password}@", "plain:plain@")
    with psycopg.connect(postgres.dsn("postgres"), autocommit=True) as db:
        db.execute("DROP DATABASE plain WITH (FORCE)")
        db.execute("DROP ROLE plain")


class TestExternalPg(MemoryContract):
    async def test_M09_another_model_is_refused(self, store):
        """With the command that fixes it; the store stays unchanged."""
        await (await store.open()).store("k", "v")
        await store.close_all()
        store.change("UPDATE model SET model_id = 'static-256/other', files = 'others'")
        with pytest.raises(ModelMismatch, match="static-256/other") as refused:
            await store.open()
        assert "memory reembed" in refused.value.hint
        store.change("UPDATE model SET model_id = %s", (await load_embedder("static-256")).model_id)
        assert (await (await store.open()).retrieve("k")).value == "v"

    async def test_M13_a_damaged_entry_breaks_no_listing_and_is_no_hit(self, store, adapter):
        """It is reported, the rest is listed and found, and the slot is degraded."""
        for number in range(4):
            await adapter.store(f"k{number}", {"n": number}, text=f"apples and pears {number}")
        store.change("UPDATE entries SET value = '{no' WHERE key = 'k1'")
        first = await adapter.list(limit=2)
        second = await adapter.list(limit=2, cursor=first.next_cursor)
        assert [entry.key for entry in (*first.items, *second.items)] == ["k0", "k2", "k3"]
        for mode in ("hybrid", "vector", "text"):
            assert sorted(hit.entry.key for hit in await adapter.search("apples", mode=mode)) == [
                "k0",
                "k2",
                "k3",
            ]
        with pytest.raises(IntegrityError, match="entry 'k1' of namespace 'default'"):
            await adapter.retrieve("k1")
        assert (await adapter.health()).state == "degraded"

    async def test_M10_a_quota_holds_for_boxes_that_write_at_once(self, store, adapter):
        """Two instances, 40 stores each, space for 60: exactly 60 are stored."""
        other = await store.with_options(namespace_entries=60).open()
        one = await store.open()
        calls = [
            box.store(f"{n}/{name}", n)
            for n in range(40)
            for name, box in (("a", one), ("b", other))
        ]
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(isinstance(outcome, tuple) for outcome in found) == 60
        assert (await adapter.stats()).entries == 60

    async def test_M13_boxes_that_open_at_once_migrate_once(self, store):
        """Eight instances on a database without the schema; number, name and digest are written down."""
        boxes = [store.make() for _ in range(8)]
        await asyncio.gather(*(box.open(Deadline.after(10)) for box in boxes))
        with store.session() as db:
            found = db.execute(
                "SELECT number, name, length(sha256) FROM migrations ORDER BY number"
            ).fetchall()
        assert found == [
            (1, "0001_tables.sql", 64),
            (2, "0002_renewal.sql", 64),
            (3, "0003_changes.sql", 64),
        ]

    @pytest.mark.parametrize(
        ("change", "why"),
        [("INSERT INTO migrations VALUES (99, '0099_later.sql', 'x')", "newer than"), ("UPDATE migrations SET sha256 = 'x'", "migration 1")],
    )  # fmt: skip
    async def test_M13_another_schema_is_refused(self, store, change, why):
        """A newer one, and one with another text."""
        await store.open()
        await store.close_all()
        store.change(change)
        with pytest.raises(IntegrityError, match=why):
            await store.open()

    async def test_M13_what_a_superuser_must_run_is_named(self, store, plain_role):
        """Where the role may not create the extension; once it exists, the same role opens and
        works."""
        store.with_secrets(dsn=plain_role)
        with pytest.raises(BackendError, match="run as a superuser: CREATE EXTENSION vector"):
            await store.make().open(Deadline.after(10))
        with psycopg.connect(store.server.dsn("plain"), autocommit=True) as db:
            db.execute("CREATE EXTENSION vector")
        adapter = store.make()
        await adapter.open(Deadline.after(10))
        await adapter.store("k", "a whale")
        assert [hit.entry.key for hit in await adapter.search("whale")] == ["k"]
        await adapter.close()

    async def test_M13_an_old_pgvector_is_refused(self, store, plain_role):
        """Below 0.8, with the statement that brings a newer one."""
        with psycopg.connect(store.server.dsn("plain"), autocommit=True) as db:
            db.execute("CREATE EXTENSION vector")
            db.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
        store.with_secrets(dsn=plain_role)
        with pytest.raises(BackendError, match=r"0\.7\.4.*ALTER EXTENSION vector UPDATE"):
            await store.make().open(Deadline.after(10))

    async def test_M14_the_graph_finds_what_exact_search_finds(self, store, full):
        """recall@10 of 0.95 or more over 100 queries at 1,500 entries (10,000 with --full), and
        with a filter that selects 1 %."""
        entries = 10_000 if full else 1_500
        adapter = await store.with_options(namespace_entries=20_000, namespace_size=1 << 30).open()
        embedder = await load_embedder("static-256")
        with store.session() as db:
            await fill(db, texts(entries))
            plan = "\n".join(
                row[0]
                for row in db.execute(
                    "EXPLAIN SELECT id FROM entries ORDER BY vector <=> (SELECT vector FROM entries LIMIT 1) LIMIT 10"
                )
            )
            assert "entries_vector" in plan
            few = entries // 100
            for filter, condition in (({}, "true"), ({"n": {"lt": few}}, f"key::int < {few}")):
                found = wanted = 0
                for query in texts(100, seed=99):
                    (vector,) = await embedder.embed([query])
                    exact = db.execute(
                        f"SELECT key FROM entries WHERE {condition} ORDER BY (vector <=> %s::vector) + 0 LIMIT 10",
                        (vector_text(vector),),
                    ).fetchall()
                    hits = await adapter.search(query, mode="vector", filter=filter)
                    assert len(hits) == 10
                    found += len({hit.entry.key for hit in hits} & {row[0] for row in exact})
                    wanted += 10
                assert found / wanted >= 0.95
