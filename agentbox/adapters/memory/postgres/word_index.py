"""The words of a schema in memory: `ts_rank_cd` of each entry with a word, as of the snapshot of a
search."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentbox.adapters.memory.rank_fusion import inverse_frequency
from agentbox.core.background.threads import run_in_thread
from agentbox.core.storage.postgres.database import Connection, fetch_all, fetch_one

if TYPE_CHECKING:
    from agentbox.adapters.memory.postings import Postings, ScoredEntries

# cached entries of 24 bytes; a larger schema is searched in SQL, as reading it would exceed a call
MAX_ENTRIES = 500_000
_CHUNK = 4096  # rows fetched at once
_MAX_CHANGES = 10_000  # changes that the schema keeps
# Each word of the query as a separate tsquery: `plainto_tsquery` has no operators and returns an
# empty query for a stop word.
_SNAPSHOT_SQL = """SELECT pg_current_snapshot()::text, now_ms(),
        (SELECT coalesce(sum(entries), 0)::bigint FROM namespaces),
        (SELECT coalesce(sum(entries), 0)::bigint FROM namespaces WHERE name = ANY(%s)),
        (SELECT coalesce(array_agg(DISTINCT q::text), '{}')
        FROM (SELECT plainto_tsquery('english', w) AS q FROM unnest(%s::text[]) w) x
            WHERE numnode(q) > 0),
        (SELECT before FROM pruned) <= pg_snapshot_xmin(held)
            AND pg_snapshot_xmax(held) <= pg_snapshot_xmax(pg_current_snapshot())
    FROM (SELECT %s::pg_snapshot AS held) h"""
_CHANGED_SQL = """SELECT c.entry, e.namespace, e.bytes, e.expires_at FROM changes c
    LEFT JOIN entries e ON e.id = c.entry
    WHERE c.at >= pg_snapshot_xmin(%s::pg_snapshot)
    AND NOT pg_visible_in_snapshot(c.at, %s::pg_snapshot)"""
_POSTINGS_SQL = """SELECT w, coalesce(string_agg(e.id::text, ','), ''),
    coalesce(string_agg(ts_rank_cd(e.words, w::tsquery)::text, ','), '')
    FROM unnest(%s::text[]) w LEFT JOIN {entries} e ON e.words @@ w::tsquery GROUP BY w"""
_ALL_SQL = _POSTINGS_SQL.format(entries="entries")
_WRITTEN_SQL = (
    "WITH written AS MATERIALIZED (SELECT id, words FROM entries WHERE id = ANY(%s)) "
    + _POSTINGS_SQL.format(entries="written")
)


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The cached postings as of a snapshot."""

    snapshot: str
    postings: "Postings"


class PgWordIndex:
    """Shared by the searches of one box. Each search first updates it to its own snapshot, taken
    under the lock."""

    def __init__(self) -> None:
        self._snapshot: _Snapshot | None = None
        self._lock = asyncio.Lock()

    async def rank(
        self, db: Connection, words: Sequence[str], namespaces: Sequence[str]
    ) -> "ScoredEntries | None":
        """Return None if there are too many entries to cache. Requires a repeatable read
        transaction without earlier reads."""
        async with self._lock:
            cached, self._snapshot = self._snapshot, None  # dropped if the update fails
            state = await fetch_one(
                db,
                _SNAPSHOT_SQL,
                (list(namespaces), list(words), None if cached is None else cached.snapshot),
            )
            assert state is not None
            snapshot, now_ms, entries, total, queries, complete = state
            if entries > MAX_ENTRIES:
                return None
            postings = await _apply_changes(db, cached) if cached is not None and complete else None
            if postings is None:
                postings = await _build(db)
            await _read_postings(db, postings, queries)

            def gain(entry_count: int, ranks: Any, _length: Any) -> Any:
                return inverse_frequency(total, entry_count) * ranks

            ranked = await run_in_thread(lambda: postings.rank(queries, namespaces, now_ms, gain))
            self._snapshot = _Snapshot(snapshot, postings)
        return ranked


async def prune_changes(db: Connection) -> None:
    """Keep the last changes only. An index older than them is rebuilt."""
    sql = """UPDATE pruned SET before = kept.at FROM (SELECT at FROM changes
        ORDER BY at DESC OFFSET %s LIMIT 1) kept
        WHERE before < kept.at RETURNING before"""
    if await fetch_one(db, sql, (_MAX_CHANGES,)) is not None:
        await db.execute("DELETE FROM changes WHERE at < (SELECT before FROM pruned)")


async def _apply_changes(db: Connection, cached: _Snapshot) -> "Postings | None":
    """Apply committed changes to the cached postings; None if they must be rebuilt."""
    changes = await fetch_all(db, _CHANGED_SQL, (cached.snapshot, cached.snapshot))
    return cached.postings if not changes or cached.postings.apply(changes) else None


async def _build(db: Connection) -> "Postings":
    from agentbox.adapters.memory.postings import Postings

    postings = Postings()
    async with db.cursor(name="entries") as cursor:
        await cursor.execute("SELECT id, namespace, bytes, expires_at FROM entries ORDER BY id")
        while chunk := await cursor.fetchmany(_CHUNK):
            postings.extend(chunk)
    return postings


async def _read_postings(db: Connection, postings: "Postings", words: Sequence[str]) -> None:
    import numpy as np

    missing = postings.missing_postings(words)
    partial = [(word, numbers) for word, numbers in missing if numbers is not None]
    results = []
    if partial:
        among = sorted(frozenset().union(*(written for _word, written in partial)))
        results += await fetch_all(db, _WRITTEN_SQL, (among, [word for word, _among in partial]))
    if len(partial) < len(missing):
        results += await fetch_all(
            db, _ALL_SQL, ([word for word, among in missing if among is None],)
        )
    for word, entries, ranks in results:
        postings.add_postings(
            word,
            np.fromstring(entries, np.int64, sep=","),
            np.fromstring(ranks, np.float32, sep=","),
        )
