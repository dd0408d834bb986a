"""beads local-sqlite meets the contract of the slot, and the further promises of SQLite."""

import apsw
import pytest
import pytest_asyncio
from agentbox_testkit.contracts.beads import BeadsContract
from agentbox_testkit.contracts.beads_common import spec
from agentbox_testkit.local_store import LocalStore

from agentbox.core.slot_errors import BackendError, IntegrityError


@pytest_asyncio.fixture
async def store(tmp_path, clock):
    made = LocalStore("beads", "local-sqlite", tmp_path, clock=clock, options={"lease_seconds": 60})
    yield made
    await made.close_all()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


class TestLocalSqlite(BeadsContract):
    @pytest.fixture
    def processes(self, full):
        """A start of each takes a fifth of a second of CPU."""
        return 10 if full else 4

    async def test_C09_an_older_store_is_migrated(self, store):
        """A store without any migration opens, and works."""
        store.directory.mkdir(parents=True)
        apsw.Connection(str(store.directory / "beads.db")).close()
        adapter = await store.open()
        bead, _ = await adapter.create_epic(spec())
        assert await adapter.show(bead.id) == bead

    async def test_C09_a_newer_store_is_refused_and_left_alone(self, store):
        """With a message about it; not a byte of the file changes."""
        await store.open()
        await store.close_all()
        path = store.directory / "beads.db"
        db = apsw.Connection(str(path))
        db.execute("INSERT INTO migrations VALUES (99, 'x'); PRAGMA journal_mode = DELETE")
        db.close()
        before = path.read_bytes()
        with pytest.raises(IntegrityError, match="newer than"):
            await store.open()
        assert path.read_bytes() == before

    async def test_C09_another_migration_of_the_same_number_is_refused(self, store):
        """Its checksum differs."""
        await store.open()
        await store.close_all()
        db = apsw.Connection(str(store.directory / "beads.db"))
        db.execute("UPDATE migrations SET sha256 = 'x' WHERE number = 1")
        db.close()
        with pytest.raises(IntegrityError, match="migration 1"):
            await store.open()

    async def test_C04_a_damaged_file_is_a_typed_error(self, store):
        """The detail names the file, and has no text of SQLite."""
        store.directory.mkdir(parents=True)
        (store.directory / "beads.db").write_bytes(b"no database " * 1000)
        with pytest.raises(BackendError, match=r"beads\.db: the file is not a database"):
            await store.open()

    async def test_C08_the_store_is_synced_in_full(self, adapter):
        """WAL with synchronous=FULL and foreign keys, in the writer."""

        def pragmas(db):
            return [
                db.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "foreign_keys")
            ]

        assert await adapter._db.read(pragmas) == ["wal", 2, 1]
