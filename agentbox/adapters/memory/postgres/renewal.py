"""The vectors of a schema of PostgreSQL, rewritten (reembed.py)."""

from collections.abc import Sequence

from agentbox.adapters.memory.postgres.rows import vector_text
from agentbox.adapters.memory.postgres.schema import MIGRATIONS, with_vector
from agentbox.adapters.memory.renewable import Begun, under_way
from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.contracts.memory import Embedder
from agentbox.core.deadline import Deadline
from agentbox.core.storage.postgres.database import Connection, Postgres, row, rows

_OPEN_SECONDS = 10.0


class PgVectors:
    """Other boxes may have the schema open; from `begin` on they are refused by the store's model."""

    def __init__(self, cfg: SlotConfig) -> None:
        self._db = Postgres(cfg, "agentbox_memory", MIGRATIONS, prepare=with_vector)

    async def open(self) -> None:
        await self._db.open(Deadline.after(_OPEN_SECONDS))

    async def close(self) -> None:
        await self._db.close()

    async def begin(self, embedder: Embedder) -> Begun:
        return await self._db.run(lambda db: _begin(db, embedder))

    async def texts(self, after: int, most: int) -> Sequence[tuple[int, str]]:
        sql = "SELECT id, text FROM entries WHERE id > %s ORDER BY id LIMIT %s"
        return [(number, text) for number, text in await self._db.repeatable(lambda db: rows(db, sql, (after, most)))]

    async def write(self, embedder: Embedder, after: int, vectors: Sequence[tuple[int, bytes | None]]) -> int:
        return await self._db.run(lambda db: _write(db, embedder, after, vectors))

    async def finish(self, embedder: Embedder, files: str) -> None:
        async def job(db: Connection) -> None:
            if await row(db, "DELETE FROM renewal WHERE model_id = %s RETURNING 1", (embedder.model_id,)):
                values = (embedder.model_id, embedder.dims, files)
                await db.execute("UPDATE model SET model_id = %s, dims = %s, files = %s", values)

        await self._db.run(job)


async def _begin(db: Connection, embedder: Embedder) -> Begun:
    """Waits for every store that is under way, whose entry the pass would miss: each asks for the model after it wrote."""
    stored = await row(db, "SELECT model_id FROM model FOR UPDATE")
    if stored is None or stored[0] == embedder.model_id:
        return Begun(stored[0] if stored else "", 0, 0, 0)
    begun = await row(db, "SELECT after FROM renewal WHERE model_id = %s", (embedder.model_id,))
    if begun is None:  # the first pass, or one to a third model
        begun = (0,)
        await db.execute("LOCK TABLE entries IN SHARE MODE")
        await db.execute("DELETE FROM renewal")
        await db.execute("INSERT INTO renewal VALUES (0, %s, 0)", (embedder.model_id,))
        await db.execute("UPDATE model SET model_id = %s, files = ''", (under_way(stored[0], embedder.model_id),))
    counts = await row(db, "SELECT count(*) FILTER (WHERE id <= %s), count(*) FROM entries", begun)
    assert counts is not None
    return Begun(stored[0], begun[0], *counts)


async def _write(db: Connection, embedder: Embedder, after: int, vectors: Sequence[tuple[int, bytes | None]]) -> int:
    sql = "SELECT after FROM renewal WHERE model_id = %s FOR UPDATE"
    stands = await row(db, sql, (embedder.model_id,))
    if stands != (after,):
        return vectors[-1][0] if stands is None else int(stands[0])
    await db.execute(
        "UPDATE entries SET vector = made.vector::vector FROM unnest(%s::bigint[], %s::text[]) made (id, vector) WHERE entries.id = made.id",
        ([number for number, _vector in vectors], [None if v is None else vector_text(v) for _number, v in vectors]),
    )
    await db.execute("UPDATE renewal SET after = %s", (vectors[-1][0],))
    return vectors[-1][0]
