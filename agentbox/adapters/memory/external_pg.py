"""Memory in a PostgreSQL schema with pgvector, shared by all boxes with the connection string (M13,
M14)."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Literal

from agentbox.adapters.memory import checks, filters
from agentbox.adapters.memory.embedder import (
    DIMS,
    LazyEmbedder,
    check_model,
    embed_text,
    find_embedder,
)
from agentbox.adapters.memory.postgres import rows, search
from agentbox.adapters.memory.postgres.rows import LIVE
from agentbox.adapters.memory.postgres.schema import MIGRATIONS, ensure_pgvector
from agentbox.adapters.memory.postgres.word_index import PgWordIndex, prune_changes
from agentbox.adapters.memory.sqlite.rows import COLUMNS, EntryDraft, Quotas, entry_from_row
from agentbox.adapters.memory.swept import SweptMemory
from agentbox.adapters.runtime.adapter import Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.input_checks import (
    check_range,
    check_text,
    decode_cursor,
    encode_cursor,
)
from agentbox.adapters.runtime.paging import page_of, page_of_records
from agentbox.adapters.runtime.postgres_cut import PostgresCut
from agentbox.contracts.memory import LIMIT, MAX_KEY, Embedder, Hit, MemoryEntry, MemoryStats
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import EMPTY, JsonObj, JsonValue, Scalar
from agentbox.core.slot_errors import SlotUnavailable
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.postgres.database import Connection, Postgres, fetch_one, write_pulse
from agentbox.core.storage.postgres.database import fetch_all as select
from agentbox.manifest.slot_options import PostgresMemoryOptions


class ExternalPgMemory(SweptMemory[Postgres]):
    """Uses the server's clock. Entry, vector and words are one row."""

    cfg: SlotConfig[PostgresMemoryOptions]
    slot = "memory"
    impl = "external-pg"

    def __init__(self, cfg: SlotConfig[PostgresMemoryOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._db = Postgres(cfg, MIGRATIONS, prepare=ensure_pgvector)
        self._quotas = Quotas(cfg.options.namespace_size, cfg.options.namespace_entries)
        self._damaged = DamagedRows("the memory in PostgreSQL")
        self._word_index = PgWordIndex()
        self._model_id = ""  # of the stored vectors
        self._model_checked = False  # the embedder is loaded and matches the stored vectors

    def cut(self, *, dump: bool) -> PostgresCut | None:
        return PostgresCut(self.cfg, "entries") if dump else None

    async def open(self, deadline: Deadline) -> None:
        """The embedder is loaded here only if its data files differ from those of the stored
        vectors."""
        embedder = find_embedder(self.cfg.options.embedder)
        await self._db.open(deadline)
        try:
            model = await self._db.run_repeatable(
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

    async def health(self) -> Health:
        """Write the server's time and read it back."""
        return self.health_is(*self._damaged.adjust_state(*await self._db.pulse(write_pulse)))

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
        draft = EntryDraft(namespace, key, stored, searched, metadata_text, dict(metadata), vector)
        return await self._db.run(lambda db: rows.store(db, draft, embedder, self._quotas, ttl_s))

    async def retrieve(self, key: str, *, namespace: str = "default") -> MemoryEntry | None:
        self._require_open()
        checks.check_key(key)
        checks.check_namespace(namespace)
        return await self._db.run_repeatable(lambda db: rows.find(db, namespace, key))

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
        embedder = await self._load_embedder(lazy)
        vector = await embed_text(embedder, query)
        search_query = search.PgSearchQuery(
            words=rows.fold_words(query),
            vector=None if vector is None else rows.vector_text(vector),
            namespaces=tuple(namespaces),
            limit=limit,
            mode=mode,
            conditions=filters.parse_filter(filter),
            min_cosine=min_cosine,
        )
        hits = await self._db.run(
            lambda db: search.search(db, embedder, self._word_index, search_query, self._damaged)
        )
        return page_of_records(hits, limit)[0]

    async def delete(self, key: str, *, namespace: str = "default") -> bool:
        self._require_open()
        checks.check_key(key)
        checks.check_namespace(namespace)
        return await self._db.run(lambda db: rows.delete(db, namespace, key))

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
        where += " AND e.key ^@ %s" + (" AND e.key > %s" if after else "")
        values = (namespace, *bound, prefix, *(after or ()), limit + 1)
        sql = (
            f"SELECT {COLUMNS} FROM entries e WHERE e.namespace = %s AND {LIVE}{where} "
            f"ORDER BY e.key LIMIT %s"
        )
        page_rows, has_more = page_of(
            await self._db.run_repeatable(lambda db: select(db, sql, values)), limit
        )
        items = self._damaged.readable_rows(page_rows, entry_from_row)
        return Page(
            items=items,
            next_cursor=encode_cursor(listing, (page_rows[-1][1],)) if has_more else None,
        )

    async def stats(self, namespace: str | None = None) -> MemoryStats:
        lazy = self._require_open()
        if not self._model_id:
            await self._load_embedder(lazy)
        if namespace is not None:
            checks.check_namespace(namespace)
        where, values = ("", ()) if namespace is None else (" AND e.namespace = %s", (namespace,))
        sql = (
            f"SELECT e.namespace, count(*), sum(e.bytes)::bigint FROM entries e "
            f"WHERE {LIVE}{where} GROUP BY 1 ORDER BY 1"
        )
        totals = await self._db.run_repeatable(lambda db: select(db, sql, values))
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
        for namespace in await self._db.run_repeatable(rows.expired_namespaces):
            await self._db.run(partial(rows.sweep, namespace=namespace))
        await self._db.run(prune_changes)

    async def _load_embedder(self, lazy: LazyEmbedder) -> Embedder:
        """Return the embedder, which matches the stored vectors. Raises ModelMismatch,
        EmbeddingError."""
        embedder = await lazy.get()
        if not self._model_checked:
            await self._db.run(lambda db: _record_model(db, embedder, lazy.files))
            self._model_checked, self._model_id = True, embedder.model_id
        return embedder

    def _require_open(self) -> LazyEmbedder:
        if self._embedder is None:
            raise SlotUnavailable(
                "cannot use memory: the store is not open",
                slot=self.slot,
                impl=self.impl,
                since=None,
            )
        return self._embedder


async def _record_model(db: Connection, embedder: Embedder, files: str) -> None:
    """Record the model of the vectors. Raises ModelMismatch if another is recorded."""
    sql = "INSERT INTO model VALUES (0, %s, %s, %s) ON CONFLICT (id) DO NOTHING"
    await db.execute(sql, (embedder.model_id, embedder.dims, files))
    stored = await fetch_one(db, "SELECT model_id, dims FROM model FOR UPDATE")
    assert stored is not None
    check_model(embedder, stored[0], stored[1])
    await db.execute("UPDATE model SET files = %s WHERE files != %s", (files, files))
