"""Rewrites the vectors of `memory.db` (memory/reembed.py)."""

from collections.abc import Sequence

import apsw

from agentbox.adapters.memory.reembeddable import ReembedCursor, partial_model_id
from agentbox.adapters.memory.sqlite.schema import MIGRATIONS
from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.contracts.memory import Embedder
from agentbox.core.storage.sqlite import Database, fetch_all, fetch_one
from agentbox.manifest.slot_options import MemoryOptions


class SqliteReembedStore:
    """A running box may have the file open; the stored model refuses it."""

    def __init__(self, cfg: SlotConfig[MemoryOptions]) -> None:
        self._db = Database(cfg.directory / "memory.db", MIGRATIONS, "memory", "local-sqlite")

    async def open(self) -> None:
        await self._db.open()

    async def close(self) -> None:
        await self._db.close()

    async def begin(self, embedder: Embedder) -> ReembedCursor:
        return await self._db.write(lambda db: _begin(db, embedder))

    async def texts(self, after: int, limit: int) -> Sequence[tuple[int, str]]:
        sql = "SELECT id, text FROM entries WHERE id > ? ORDER BY id LIMIT ?"
        return [
            (number, text)
            for number, text in await self._db.read(lambda db: fetch_all(db, sql, (after, limit)))
        ]

    async def write(
        self, embedder: Embedder, after: int, vectors: Sequence[tuple[int, bytes | None]]
    ) -> int:
        return await self._db.write(lambda db: _write(db, embedder, after, vectors))

    async def finish(self, embedder: Embedder, files: str) -> None:
        def job(db: apsw.Connection) -> None:
            done = fetch_one(
                db, "DELETE FROM renewal WHERE model_id = ? RETURNING 1", (embedder.model_id,)
            )
            if done is not None:
                values = (embedder.model_id, embedder.dims, files)
                db.execute("UPDATE model SET model_id = ?, dims = ?, files = ?", values)

        await self._db.write(job)


def _begin(db: apsw.Connection, embedder: Embedder) -> ReembedCursor:
    stored = fetch_one(db, "SELECT model_id FROM model")
    if stored is None or stored[0] == embedder.model_id:
        return ReembedCursor(stored[0] if stored else "", 0, 0, 0)
    progress = fetch_one(db, "SELECT after FROM renewal WHERE model_id = ?", (embedder.model_id,))
    if progress is None:  # the first pass, or a pass to a third model
        progress = (0,)
        db.execute("INSERT OR REPLACE INTO renewal VALUES (0, ?, 0)", (embedder.model_id,))
        db.execute(
            "UPDATE model SET model_id = ?, files = ''",
            (partial_model_id(stored[0], embedder.model_id),),
        )
    counts = fetch_all(db, "SELECT coalesce(sum(id <= ?), 0), count(*) FROM entries", progress)[0]
    return ReembedCursor(stored[0], progress[0], *counts)


def _write(
    db: apsw.Connection, embedder: Embedder, after: int, vectors: Sequence[tuple[int, bytes | None]]
) -> int:
    progress = fetch_one(db, "SELECT after FROM renewal WHERE model_id = ?", (embedder.model_id,))
    if progress != (after,):
        return vectors[-1][0] if progress is None else int(progress[0])
    db.execute("UPDATE stamps SET last = last + 1")
    for number, vector in vectors:
        db.execute("DELETE FROM vectors WHERE entry = ?", (number,))
        if vector is not None:  # unless the entry was deleted meanwhile
            sql = (
                "INSERT INTO vectors SELECT id, ?, (SELECT last FROM stamps) FROM entries "
                "WHERE id = ?"
            )
            db.execute(sql, (vector, number))
    db.execute("UPDATE renewal SET after = ?", (vectors[-1][0],))
    return vectors[-1][0]
