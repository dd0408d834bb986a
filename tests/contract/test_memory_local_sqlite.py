"""memory local-sqlite meets the contract of the slot, and the further promises of a SQLite file
(M9, M12, C9)."""

import asyncio
import socket

import apsw
import pytest
import pytest_asyncio
from agentbox_testkit.contracts.memory import OPTIONS, MemoryContract
from agentbox_testkit.local_store import LocalStore

from agentbox.adapters.memory import embedder
from agentbox.core.slot_errors import EmbeddingError, IntegrityError, ModelMismatch


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """M8: nothing may open a connection to embed."""

    def refuse(*_arguments):
        raise AssertionError("a socket was connected")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest_asyncio.fixture
async def store(tmp_path, clock):
    made = LocalStore("memory", "local-sqlite", tmp_path, clock=clock, options=OPTIONS)
    yield made
    await made.close_all()


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


def change(store, sql):
    db = apsw.Connection(str(store.directory / "memory.db"))
    db.execute(sql)
    db.close()


class TestLocalSqlite(MemoryContract):
    async def test_M09_another_model_is_refused(self, store):
        """With the command that fixes it; the store stays unchanged."""
        adapter = await store.open()
        await adapter.store("k", "v")
        await store.close_all()
        change(store, "UPDATE model SET model_id = 'static-256/other', files = 'others'")
        with pytest.raises(ModelMismatch, match="static-256/other") as refused:
            await store.open()
        assert "memory reembed" in refused.value.hint
        change(
            store,
            f"UPDATE model SET model_id = '{(await embedder.load_embedder('static-256')).model_id}'",
        )
        assert (await (await store.open()).retrieve("k")).value == "v"

    async def test_M09_the_model_is_loaded_at_its_first_use(self, store, monkeypatch):
        """Neither opening nor reading loads it; should it turn out another one then, nothing is stored."""
        await (await store.open()).store("k", "v")
        await store.close_all()
        loads = []

        async def counted(name, load=embedder.load_embedder):
            loads.append(name)
            return await load(name)

        monkeypatch.setattr(embedder, "load_embedder", counted)
        adapter = await store.open()
        assert (await adapter.stats()).model_id.startswith("static-256/")
        assert (await adapter.retrieve("k")).value == "v"
        assert loads == []
        await asyncio.gather(*(adapter.store(f"k{n}", "v") for n in range(8)))
        assert loads == ["static-256"]
        await store.close_all()
        change(store, "UPDATE model SET model_id = 'static-256/other'")
        adapter = await store.open()
        with pytest.raises(ModelMismatch, match="static-256/other"):
            await adapter.store("new", "v")
        assert await adapter.retrieve("new") is None

    async def test_M09_a_missing_model_file_is_named(self, store, monkeypatch):
        """The slot does not open."""
        monkeypatch.setattr(embedder, "_MATRIX", "weights/none.safetensors")
        with pytest.raises(EmbeddingError, match=r"weights/none\.safetensors"):
            await store.open()

    async def test_M09_an_unknown_embedder_is_refused(self, store):
        """By its name."""
        with pytest.raises(EmbeddingError, match="big-model"):
            await store.with_options(embedder="big-model").open()

    async def test_M12_one_transaction_and_no_row_left_behind(self, store, adapter):
        """After overwrites and deletes each table has the rows that the entries need."""
        for number in range(20):
            await adapter.store(f"{number % 5}", f"whale {number}", metadata={"n": number})
        await adapter.delete("0")
        await store.close_all()
        db = apsw.Connection(str(store.directory / "memory.db"))
        counts = {
            name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in ("entries", "vectors", "metadata", "words_of")
        }
        assert counts == {"entries": 4, "vectors": 4, "metadata": 4, "words_of": 4}

    async def test_C09_a_newer_store_is_refused(self, store):
        """With a sentence."""
        await store.open()
        await store.close_all()
        change(store, "INSERT INTO migrations VALUES (99, 'x')")
        with pytest.raises(IntegrityError, match="newer than"):
            await store.open()
