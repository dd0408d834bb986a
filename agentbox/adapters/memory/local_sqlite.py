"""Memory in a SQLite file of the box: exact search by vector (sqlite-vec) and words (FTS5)."""

import asyncio
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar

import apsw

from agentbox.adapters.memory import checks, filters, relevance
from agentbox.adapters.memory.embedder import (
    DIMS,
    LazyEmbedder,
    check_model,
    embed_text,
    find_embedder,
)
from agentbox.adapters.memory.sqlite import rows, search
from agentbox.adapters.memory.sqlite.rows import LIVE, EntryDraft, Quotas, entry_from_row
from agentbox.adapters.memory.sqlite.schema import MIGRATIONS
from agentbox.adapters.memory.sqlite.vector_index import VectorIndex
from agentbox.adapters.memory.sqlite.word_index import SqliteWordIndex
from agentbox.adapters.memory.swept import SWEEP_SECONDS, SweptMemory
from agentbox.adapters.runtime.adapter import Deps, Page, SlotConfig
from agentbox.adapters.runtime.cut import SqliteCut
from agentbox.adapters.runtime.input_checks import (
    check_range,
    check_text,
    decode_cursor,
    encode_cursor,
)
from agentbox.adapters.runtime.paging import page_of, page_of_records
from agentbox.adapters.runtime.sqlite_adapter import SqliteAdapter
from agentbox.contracts.memory import LIMIT, MAX_KEY, Embedder, Hit, MemoryEntry, MemoryStats
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import EMPTY, JsonObj, JsonValue, Scalar
from agentbox.core.storage.damaged_rows import DamagedRows, damaged_row
from agentbox.core.storage.invalid_utf8_keys import is_sound, to_bindable
from agentbox.core.storage.sqlite import Database, closed_error, fetch_one
from agentbox.core.storage.sqlite_text import each_row
from agentbox.manifest.slot_options import MemoryOptions

T = TypeVar("T")


class LocalSqliteMemory(SweptMemory[Database], SqliteAdapter):
    """`memory.db`. Entry, vector and words are written in one transaction."""

    cfg: SlotConfig[MemoryOptions]
    slot = "memory"
    impl = "local-sqlite"

    def __init__(self, cfg: SlotConfig[MemoryOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        path = cfg.directory / "memory.db"
        self._db = Database(
            path, MIGRATIONS, self.slot, self.impl, prepare=prepare, record=cfg.record
        )
        self._quotas = Quotas(cfg.options.namespace_size, cfg.options.namespace_entries)
        self._damaged = DamagedRows("memory.db")
        self._vector_index = VectorIndex(DIMS)
        self._word_index = SqliteWordIndex()
        self._model_id = ""  # of the stored vectors
        self._model_checked = False  # the embedder is loaded and matches the stored vectors
        self._swept_at = 0  # milliseconds since 1970

    def cut(self, *, dump: bool) -> SqliteCut:
        return SqliteCut(
            self.cfg.directory / "memory.db",
            "memory/memory.db",
            "SELECT count(*) FROM entries",
            self.slot,
            self.impl,
        )

    async def open(self, deadline: Deadline) -> None:
        """Load the embedder only if its data files differ from those of the stored vectors."""
        embedder = find_embedder(self.cfg.options.embedder)
        await self._db.open()
        try:
            model = await self._db.read(
                lambda db: fetch_one(db, "SELECT model_id, files FROM model")
            )
            if model is not None and model[1] != embedder.files:
                await self._load_embedder(embedder)
        except BaseException:
            await embedder.close()
            await self._db.close()
            raise
        self._embedder, self._model_id = embedder, self._model_id if model is None else model[0]
        self._sweeper = asyncio.ensure_future(self._sweep())

    async def store(
        self,
        key: str,
        value: JsonValue,
        *,
        namespace: str = "default",
        text: str | None = None,
        metadata: Mapping[str, Scalar] = EMPTY,
        ttl_s: int | None = None,
    ) -> tuple[MemoryEntry, bool]:
        lazy = self._require_open()
        checks.check_key(key)
        checks.check_namespace(namespace)
        checks.check_ttl(ttl_s)
        searched = checks.searchable_text(value, text)
        stored, metadata_text = checks.check_value(value), checks.check_metadata(metadata)
        embedder = await self._load_embedder(lazy)
        vector = await embed_text(embedder, searched)
        now = self._now()
        # expired entries must not count against a quota
        if now - self._swept_at >= SWEEP_SECONDS * 1000:
            await self._remove_expired()
        draft = EntryDraft(
            namespace,
            key,
            stored,
            searched,
            metadata_text,
            dict(metadata),
            vector,
            None if ttl_s is None else now + 1000 * ttl_s,
        )
        return await self._db.write(lambda db: rows.store(db, draft, embedder, self._quotas, now))

    async def retrieve(self, key: str, *, namespace: str = "default") -> MemoryEntry | None:
        self._require_open()
        checks.check_key(key)
        checks.check_namespace(namespace)
        now = self._now()
        return await self._db.read(lambda db: rows.find(db, namespace, key, now))

    async def search(
        self,
        query: str,
        *,
        namespaces: tuple[str, ...] = ("default",),
        limit: int = 10,
        mode: Literal["hybrid", "vector", "text"] = "hybrid",
        filter: JsonObj = EMPTY,
        min_cosine: float | None = None,
    ) -> tuple[Hit, ...]:
        """In mode `text` only entries with a word of the query are hits; in the others any entry
        with a vector can be."""
        lazy = self._require_open()
        checks.check_search(query, namespaces, limit, mode, min_cosine)
        embedder, vector_index, word_index = (
            await self._load_embedder(lazy),
            self._vector_index,
            self._word_index,
        )
        vector = await embed_text(embedder, query)
        search_query = search.SearchQuery(
            words=search.quote_words(query),
            vector=vector,
            namespaces=tuple(namespaces),
            limit=limit,
            mode=mode,
            conditions=filters.parse_filter(filter),
            min_cosine=min_cosine,
            now=self._now(),
        )

        def job(db: apsw.Connection) -> tuple[Hit, ...]:
            rows.check_stored_model(db, embedder)
            return search.search(db, vector_index, word_index, search_query, self._damaged)

        return page_of_records(await self._db.read(job), limit)[0]

    async def delete(self, key: str, *, namespace: str = "default") -> bool:
        self._require_open()
        checks.check_key(key)
        checks.check_namespace(namespace)
        now = self._now()
        return await self._db.write(lambda db: rows.delete(db, namespace, key, now))

    async def list(
        self,
        *,
        namespace: str = "default",
        prefix: str = "",
        filter: JsonObj = EMPTY,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[MemoryEntry]:
        self._require_open()
        checks.check_namespace(namespace)
        check_text(prefix, "/prefix", max_length=MAX_KEY)
        check_range(limit, "/limit", LIMIT)
        conditions = filters.parse_filter(filter)
        listing = ["list", namespace, prefix, dict(filter)]
        after = decode_cursor(cursor, listing, 1)
        where, bound = search.conditions_sql(conditions)
        where += " AND substr(e.key, 1, ?) = ?" + (" AND e.key > CAST(? AS TEXT)" if after else "")
        values = (
            namespace,
            self._now(),
            *bound,
            len(prefix),
            prefix,
            *map(to_bindable, after or ()),
            limit + 1,
        )
        sql = f"e.namespace = ? AND {LIVE}{where} ORDER BY e.key LIMIT ?"
        page_rows, has_more = await self._db.read(
            lambda db: page_of(rows.raw_entries(db, sql, values), limit)
        )
        items = self._damaged.readable_rows(page_rows, entry_from_row)
        return Page(
            items=items,
            next_cursor=encode_cursor(listing, (page_rows[-1][1],)) if has_more else None,
        )

    async def stats(self, namespace: str | None = None) -> MemoryStats:
        lazy, now = self._require_open(), self._now()
        if not self._model_id:
            await self._load_embedder(lazy)
        if namespace is not None:
            checks.check_namespace(namespace)
        where, values = ("", ()) if namespace is None else (" AND e.namespace = ?", (namespace,))
        sql = f"""SELECT e.namespace, count(*) AS entries, sum(e.bytes) AS bytes FROM entries e
            WHERE {LIVE}{where} GROUP BY 1 ORDER BY 1"""
        names = ("namespace", "entries", "bytes")
        stored = await self._db.read(
            lambda db: list(each_row(db, sql, (now, *values), names, key_columns=1))
        )
        totals = self._damaged.readable_rows(stored, _checked_namespace)
        return MemoryStats(
            entries=sum(total[1] for total in totals),
            bytes=sum(total[2] for total in totals),
            namespaces=tuple(total[0] for total in totals),
            model_id=self._model_id,
            dims=DIMS,
            quotas={
                "namespace_size": self._quotas.bytes,
                "namespace_entries": self._quotas.entries,
            },
        )

    async def _remove_expired(self) -> None:
        self._swept_at = now = self._now()
        while await self._db.write(lambda db: rows.sweep(db, now)):
            continue

    async def _load_embedder(self, lazy: LazyEmbedder) -> Embedder:
        """Return the embedder of the stored vectors. Raises ModelMismatch, EmbeddingError."""
        embedder = await lazy.get()
        if not self._model_checked:
            await self._db.write(lambda db: _record_model(db, embedder, lazy.files))
            self._model_checked, self._model_id = True, embedder.model_id
        return embedder

    def _now(self) -> int:
        return int(self.deps.clock.now().timestamp() * 1000)

    def _require_open(self) -> LazyEmbedder:
        if self._embedder is None:
            raise closed_error(self.slot, self.impl)
        return self._embedder


def _checked_namespace(record: tuple[Any, ...]) -> tuple[Any, ...]:
    if not is_sound(record[0]):
        raise damaged_row(f"namespace {record[0]}")
    return record


def prepare(connection: apsw.Connection) -> None:
    """Register SQL functions. The extension's package is not imported: it would import numpy."""
    relevance.register(connection)
    spec = find_spec("sqlite_vec")
    assert spec is not None
    assert spec.origin is not None
    connection.enable_load_extension(True)
    connection.load_extension(str(Path(spec.origin).parent / "vec0"))
    connection.enable_load_extension(False)


def _record_model(db: apsw.Connection, embedder: Embedder, files: str) -> None:
    """Record the model of the vectors. Raises ModelMismatch if another is recorded."""
    stored = fetch_one(db, "SELECT model_id, dims FROM model")
    if stored is None:
        db.execute(
            "INSERT INTO model VALUES (0, ?, ?, ?)", (embedder.model_id, embedder.dims, files)
        )
    else:
        check_model(embedder, stored[0], stored[1])
        db.execute("UPDATE model SET files = ?", (files,))
