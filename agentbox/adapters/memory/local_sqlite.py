"""Memory in a SQLite file of the box: exact search by vector (sqlite-vec), by words (FTS5), and by both."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar

import apsw

from agentbox.adapters.memory import checks, filters, relevance
from agentbox.adapters.memory.embedder import DIMS, NAME, Lazy, check_model, find, vector_of
from agentbox.adapters.memory.sqlite import rows, search
from agentbox.adapters.memory.sqlite.nearest import Vectors
from agentbox.adapters.memory.sqlite.rows import LIVE, Draft, Quotas, entry_of
from agentbox.adapters.memory.sqlite.schema import MIGRATIONS
from agentbox.adapters.memory.sqlite.words import Words
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.checks import check_range, check_text, cursor_of, key_of
from agentbox.adapters.runtime.paging import page_of, records_of
from agentbox.contracts.memory import Embedder, Hit, MemoryEntry, MemoryStats
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import EMPTY, JsonObj, JsonValue, Scalar
from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.damaged_rows import DamagedRows, damaged_row
from agentbox.core.storage.sqlite import Database, closed, row
from agentbox.core.storage.sqlite_text import each_row
from agentbox.core.storage.stored_keys import is_sound, raw

T = TypeVar("T")
SWEEP_SECONDS = 30.0  # what has expired is invisible at once, and gone within 60 s


class LocalSqliteMemory(Adapter):
    """`memory.db`. Entry, vector and words of one store are one transaction."""

    slot = "memory"
    impl = "local-sqlite"

    def __init__(self, cfg: SlotConfig, deps: Deps) -> None:
        super().__init__(cfg, deps)
        path = cfg.directory / "memory.db"
        self._db = Database(path, MIGRATIONS, self.slot, self.impl, prepare=_prepare, record=cfg.record)
        self._quotas = Quotas(
            int(cfg.option("namespace_size", 256 << 20)), int(cfg.option("namespace_entries", 50_000))
        )
        self._damaged = DamagedRows("memory.db")
        self._embedder: Lazy | None = None
        self._vectors = Vectors(DIMS)
        self._words = Words()
        self._model_id = ""  # of the vectors that are stored
        self._known = False  # the embedder was loaded, and made those vectors
        self._swept = 0  # milliseconds since 1970
        self._sweeper: asyncio.Task[None] | None = None

    async def open(self, deadline: Deadline) -> None:
        """The embedder is loaded here only when other files made the vectors than there are now."""
        embedder = find(str(self.cfg.option("embedder", NAME)))
        await self._db.open()
        try:
            found = await self._db.read(lambda db: row(db, "SELECT model_id, files FROM model"))
            if found is not None and found[1] != embedder.files:
                await self._load(embedder)
        except BaseException:
            await embedder.close()
            await self._db.close()
            raise
        self._embedder, self._model_id = embedder, self._model_id if found is None else found[0]
        self._sweeper = asyncio.ensure_future(self._sweep())

    async def close(self) -> None:
        sweeper, self._sweeper, embedder, self._embedder = self._sweeper, None, self._embedder, None
        if sweeper is not None:
            sweeper.cancel()
            await asyncio.wait({sweeper})
        if embedder is not None:
            await embedder.close()
        await self._db.close()

    async def health(self) -> Health:
        """Writes a time and reads it back."""
        state, detail = await self._db.pulse(self._now())
        return self.health_is(*self._damaged.judged(state, detail))

    async def store(
        self, key: str, value: JsonValue, *,
        namespace: str = "default", text: str | None = None, metadata: Mapping[str, Scalar] = EMPTY, ttl_s: int | None = None,
    ) -> tuple[MemoryEntry, bool]:  # fmt: skip
        lazy = self._open()
        checks.check_key(key)
        checks.check_namespace(namespace)
        checks.check_ttl(ttl_s)
        words = checks.text_of(value, text)
        stored, extra = checks.check_value(value), checks.check_metadata(metadata)
        embedder = await self._load(lazy)
        vector = await vector_of(embedder, words)
        now = self._now()
        if now - self._swept >= SWEEP_SECONDS * 1000:  # what has expired must not stand in the way of a quota
            await self._forget()
        draft = Draft(
            namespace, key, stored, words, extra, dict(metadata), vector, None if ttl_s is None else now + 1000 * ttl_s
        )
        return await self._db.write(lambda db: rows.store(db, draft, embedder, self._quotas, now))

    async def retrieve(self, key: str, *, namespace: str = "default") -> MemoryEntry | None:
        self._open()
        checks.check_key(key)
        checks.check_namespace(namespace)
        now = self._now()
        return await self._db.read(lambda db: rows.find(db, namespace, key, now))

    async def search(
        self, query: str, *,
        namespaces: tuple[str, ...] = ("default",), limit: int = 10, mode: Literal["hybrid", "vector", "text"] = "hybrid",
        flt: JsonObj = EMPTY, min_cosine: float | None = None,
    ) -> tuple[Hit, ...]:  # fmt: skip
        """In `text` only entries that hold a word of the query are hits; in the others every entry with a vector can be."""
        lazy = self._open()
        checks.check_search(query, namespaces, limit, mode, min_cosine)
        embedder, vectors, words = await self._load(lazy), self._vectors, self._words
        vector = await vector_of(embedder, query)
        asked = search.Question(
            words=search.words_of(query), vector=vector, namespaces=tuple(namespaces), limit=limit,
            mode=mode, conditions=filters.parse(flt), min_cosine=min_cosine, now=self._now(),
        )  # fmt: skip

        def job(db: apsw.Connection) -> tuple[Hit, ...]:
            rows.check_maker(db, embedder)
            return search.search(db, vectors, words, asked, self._damaged)

        return records_of(await self._db.read(job), limit)[0]

    async def delete(self, key: str, *, namespace: str = "default") -> bool:
        self._open()
        checks.check_key(key)
        checks.check_namespace(namespace)
        now = self._now()
        return await self._db.write(lambda db: rows.delete(db, namespace, key, now))

    async def list(
        self, *, namespace: str = "default", prefix: str = "", flt: JsonObj = EMPTY, limit: int = 100, cursor: str | None = None
    ) -> Page[MemoryEntry]:  # fmt: skip
        self._open()
        checks.check_namespace(namespace)
        check_text(prefix, "/prefix", longest=checks.MAX_KEY)
        check_range(limit, "/limit", checks.LIMIT)
        conditions = filters.parse(flt)
        listing = ["list", namespace, prefix, dict(flt)]
        after = key_of(cursor, listing, 1)
        where, bound = search.conditions_sql(conditions)
        where += " AND substr(e.key, 1, ?) = ?" + (" AND e.key > CAST(? AS TEXT)" if after else "")
        values = (namespace, self._now(), *bound, len(prefix), prefix, *map(raw, after or ()), limit + 1)
        sql = f"e.namespace = ? AND {LIVE}{where} ORDER BY e.key LIMIT ?"
        found, more = await self._db.read(lambda db: page_of(rows.raw_entries(db, sql, values), limit))
        items = self._damaged.readable(found, entry_of)
        return Page(items=items, next_cursor=cursor_of(listing, (found[-1][1],)) if more else None)

    async def stats(self, namespace: str | None = None) -> MemoryStats:
        lazy, now = self._open(), self._now()
        if not self._model_id:
            await self._load(lazy)
        if namespace is not None:
            checks.check_namespace(namespace)
        where, values = ("", ()) if namespace is None else (" AND e.namespace = ?", (namespace,))
        sql = f"SELECT e.namespace, count(*) AS entries, sum(e.bytes) AS bytes FROM entries e WHERE {LIVE}{where} GROUP BY 1 ORDER BY 1"
        names = ("namespace", "entries", "bytes")
        each = await self._db.read(lambda db: list(each_row(db, sql, (now, *values), names, named=1)))
        found = self._damaged.readable(each, _of_sound_namespace)
        return MemoryStats(
            entries=sum(one[1] for one in found), bytes=sum(one[2] for one in found), namespaces=tuple(one[0] for one in found),
            model_id=self._model_id, dims=DIMS,
            quotas={"namespace_size": self._quotas.bytes, "namespace_entries": self._quotas.entries},
        )  # fmt: skip

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            with suppress(AdapterError):  # health tells; the next round tries again
                await self._forget()

    async def _forget(self) -> None:
        self._swept = now = self._now()
        while await self._db.write(lambda db: rows.sweep(db, now)):
            continue

    async def _load(self, lazy: Lazy) -> Embedder:
        """The embedder, which made the vectors that are stored. Raises ModelMismatch, EmbeddingError."""
        embedder = await lazy.loaded()
        if not self._known:
            await self._db.write(lambda db: _same_model(db, embedder, lazy.files))
            self._known, self._model_id = True, embedder.model_id
        return embedder

    def _now(self) -> int:
        return int(self.deps.clock.now().timestamp() * 1000)

    def _open(self) -> Lazy:
        if self._embedder is None:
            raise closed(self.slot, self.impl)
        return self._embedder


def _of_sound_namespace(found: tuple[Any, ...]) -> tuple[Any, ...]:
    if not is_sound(found[0]):
        raise damaged_row(f"namespace {found[0]}")
    return found


def _prepare(connection: apsw.Connection) -> None:
    """What a search asks of SQLite. The extension is found without importing its package, which would import numpy."""
    relevance.register(connection)
    spec = find_spec("sqlite_vec")
    assert spec is not None
    assert spec.origin is not None
    connection.enable_load_extension(True)
    connection.load_extension(str(Path(spec.origin).parent / "vec0"))
    connection.enable_load_extension(False)


def _same_model(db: apsw.Connection, embedder: Embedder, files: str) -> None:
    """Writes down which model made the vectors. Raises ModelMismatch when it was another."""
    found = row(db, "SELECT model_id, dims FROM model")
    if found is None:
        db.execute("INSERT INTO model VALUES (0, ?, ?, ?)", (embedder.model_id, embedder.dims, files))
    else:
        check_model(embedder, found[0], found[1])
        db.execute("UPDATE model SET files = ?", (files,))
