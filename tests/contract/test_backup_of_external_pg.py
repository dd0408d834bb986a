"""A slot in PostgreSQL in a backup: its tables as text, of the moment of the cut."""

import asyncio
import json

import psycopg
import pytest
import pytest_asyncio
from agentbox_testkit.contracts.beads_common import spec
from postgres_store import PostgresStore, ServerClock

from agentbox.core.slot_errors import SlotUnavailable


@pytest_asyncio.fixture
async def store(postgres, tmp_path):
    ServerClock(postgres)  # of the sessions of a store
    made = PostgresStore("beads", postgres, tmp_path, {"lease_seconds": 60})
    yield made
    await made.remove()


def no_stop():
    """The work goes on."""


async def test_a_dump_is_one_moment_and_can_be_read_back(postgres, store, tmp_path):
    """Beads that are written between the cut and the dump are not in it; COPY reads it into the same
    tables of another schema."""
    adapter = await store.open()
    assert adapter.cut(dump=False) is None
    kept, _ = await adapter.create_epic(spec("kept"))
    cut = adapter.cut(dump=True)
    await asyncio.to_thread(cut.prepare)
    try:
        await asyncio.to_thread(cut.begin)
        await adapter.create_epic(spec("later"))
        assert cut.size() > 0
        part = await asyncio.to_thread(cut.stage, tmp_path / "staged", no_stop)
    finally:
        await asyncio.to_thread(cut.close)
    folder = tmp_path / "staged/external/beads"
    written = json.loads((folder / "store.json").read_bytes())
    assert part.count == 1
    assert part.stores == {"external/beads": written["migration"]}
    assert {"beads", "deps", "tags", "migrations"} <= set(written["columns"])
    schema = adapter.cfg.options.schema
    with psycopg.connect(postgres.dsn(), autocommit=True) as db:
        db.execute("CREATE SCHEMA copied")
        try:
            db.execute(f"CREATE TABLE copied.beads (LIKE {schema}.beads INCLUDING ALL)")
            columns = ", ".join(f'"{name}"' for name in written["columns"]["beads"])
            with db.cursor() as cursor, cursor.copy(f"COPY copied.beads ({columns}) FROM STDIN") as rows:  # fmt: skip
                rows.write((folder / "beads.copy").read_bytes())
            found = db.execute("SELECT id, title FROM copied.beads").fetchall()
            live = db.execute(f"SELECT id, title FROM {schema}.beads WHERE title = 'kept'").fetchall()  # fmt: skip
        finally:
            db.execute("DROP SCHEMA copied CASCADE")
    assert found == live
    assert str(found[0][0]) == kept.id


async def test_a_server_that_does_not_answer_ends_the_begin(postgres, store):
    """A lock that every query needs stands for a stopped server: the begin fails by its deadline."""
    adapter = await store.open()
    cut = adapter.cut(dump=True)
    await asyncio.to_thread(cut.prepare)
    try:
        with psycopg.connect(postgres.dsn()) as db:
            db.execute("LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(SlotUnavailable, match="it did not answer in time"):
                await asyncio.to_thread(cut.begin, 0.5)
    finally:
        await asyncio.to_thread(cut.close)
