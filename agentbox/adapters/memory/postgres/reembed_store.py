"""Rewrites the vectors of a PostgreSQL schema (memory/reembed.py)."""

from collections.abc import Sequence

from agentbox.adapters.memory.postgres.rows import vector_text
from agentbox.adapters.memory.postgres.schema import MIGRATIONS, ensure_pgvector
from agentbox.adapters.memory.reembeddable import ReembedCursor, partial_model_id
from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.contracts.memory import Embedder
from agentbox.core.deadline import Deadline
from agentbox.core.storage.postgres.database import Connection, Postgres, fetch_all, fetch_one
from agentbox.manifest.slot_options import PostgresMemoryOptions

_OPEN_SECONDS = 10.0


class PgReembedStore:
    """Other boxes may have the schema open; after `begin` the stored model refuses them."""

    def __init__(self, cfg: SlotConfig[PostgresMemoryOptions]) -> None:
        self._db = Postgres(cfg, MIGRATIONS, prepare=ensure_pgvector)

    async def open(self) -> None:
        await self._db.open(Deadline.after(_OPEN_SECONDS))

    async def close(self) -> None:
        await self._db.close()

    async def begin(self, embedder: Embedder) -> ReembedCursor:
        return await self._db.run(lambda db: _begin(db, embedder))

    async def texts(self, after: int, limit: int) -> Sequence[tuple[int, str]]:
        sql = "SELECT id, text FROM entries WHERE id > %s ORDER BY id LIMIT %s"
        return [
            (number, text)
            for number, text in await self._db.run_repeatable(
                lambda db: fetch_all(db, sql, (after, limit))
            )
        ]

    async def write(
        self, embedder: Embedder, after: int, vectors: Sequence[tuple[int, bytes | None]]
    ) -> int:
        return await self._db.run(lambda db: _write(db, embedder, after, vectors))

    async def finish(self, embedder: Embedder, files: str) -> None:
        async def job(db: Connection) -> None:
            if await fetch_one(
                db, "DELETE FROM renewal WHERE model_id = %s RETURNING 1", (embedder.model_id,)
            ):
                values = (embedder.model_id, embedder.dims, files)
                await db.execute("UPDATE model SET model_id = %s, dims = %s, files = %s", values)

        await self._db.run(job)


async def _begin(db: Connection, embedder: Embedder) -> ReembedCursor:
    """Wait for concurrent stores, whose entries the pass would miss: each checks the model after
    writing."""
    stored = await fetch_one(db, "SELECT model_id FROM model FOR UPDATE")
    if stored is None or stored[0] == embedder.model_id:
        return ReembedCursor(stored[0] if stored else "", 0, 0, 0)
    progress = await fetch_one(
        db, "SELECT after FROM renewal WHERE model_id = %s", (embedder.model_id,)
    )
    if progress is None:  # the first pass, or a pass to a third model
        progress = (0,)
        await db.execute("LOCK TABLE entries IN SHARE MODE")
        await db.execute("DELETE FROM renewal")
        await db.execute("INSERT INTO renewal VALUES (0, %s, 0)", (embedder.model_id,))
        await db.execute(
            "UPDATE model SET model_id = %s, files = ''",
            (partial_model_id(stored[0], embedder.model_id),),
        )
    counts = await fetch_one(
        db, "SELECT count(*) FILTER (WHERE id <= %s), count(*) FROM entries", progress
    )
    assert counts is not None
    return ReembedCursor(stored[0], progress[0], *counts)


async def _write(
    db: Connection, embedder: Embedder, after: int, vectors: Sequence[tuple[int, bytes | None]]
) -> int:
    sql = "SELECT after FROM renewal WHERE model_id = %s FOR UPDATE"
    progress = await fetch_one(db, sql, (embedder.model_id,))
    if progress != (after,):
        return vectors[-1][0] if progress is None else int(progress[0])
    await db.execute(
        (
            "UPDATE entries SET vector = made.vector::vector "
            "FROM unnest(%s::bigint[], %s::text[]) made (id, vector) WHERE entries.id = made.id"
        ),
        (
            [number for number, _vector in vectors],
            [None if v is None else vector_text(v) for _number, v in vectors],
        ),
    )
    await db.execute("UPDATE renewal SET after = %s", (vectors[-1][0],))
    return vectors[-1][0]
