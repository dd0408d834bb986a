"""The words of a schema in memory: what `ts_rank_cd` says of each entry that has a word, as of the snapshot of a search."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentbox.adapters.memory.ranking import inverse_frequency
from agentbox.core.background.threads import in_thread
from agentbox.core.storage.postgres.database import Connection, row, rows

if TYPE_CHECKING:
    from agentbox.adapters.memory.postings import Postings, Ranked

MOST = 500_000  # entries held, 24 bytes each; a schema of more is searched by SQL, as reading it would outlast a call
_CHUNK = 4096  # rows fetched at once
_KEPT = 10_000  # changes that the schema remembers
# The words of the query as queries of their own: `plainto_tsquery` knows no operators, and of a stop word it makes an empty one.
_NOW = """SELECT pg_current_snapshot()::text, now_ms(),
        (SELECT coalesce(sum(entries), 0)::bigint FROM namespaces),
        (SELECT coalesce(sum(entries), 0)::bigint FROM namespaces WHERE name = ANY(%s)),
        (SELECT coalesce(array_agg(DISTINCT q::text), '{}') FROM (SELECT plainto_tsquery('english', w) AS q FROM unnest(%s::text[]) w) x
            WHERE numnode(q) > 0),
        (SELECT before FROM pruned) <= pg_snapshot_xmin(held)
            AND pg_snapshot_xmax(held) <= pg_snapshot_xmax(pg_current_snapshot())
    FROM (SELECT %s::pg_snapshot AS held) h"""
_CHANGED = """SELECT c.entry, e.namespace, e.bytes, e.expires_at FROM changes c LEFT JOIN entries e ON e.id = c.entry
    WHERE c.at >= pg_snapshot_xmin(%s::pg_snapshot) AND NOT pg_visible_in_snapshot(c.at, %s::pg_snapshot)"""
_HAVING = """SELECT w, coalesce(string_agg(e.id::text, ','), ''), coalesce(string_agg(ts_rank_cd(e.words, w::tsquery)::text, ','), '')
    FROM unnest(%s::text[]) w LEFT JOIN {entries} e ON e.words @@ w::tsquery GROUP BY w"""
_ALL = _HAVING.format(entries="entries")
_SOME = "WITH written AS MATERIALIZED (SELECT id, words FROM entries WHERE id = ANY(%s)) " + _HAVING.format(
    entries="written"
)


@dataclass(frozen=True, slots=True)
class _Held:
    """What is held as of a snapshot."""

    snapshot: str
    postings: "Postings"


class Words:
    """Shared by the searches of one box. Each first brings it up to its own snapshot, which it takes when its turn comes."""

    def __init__(self) -> None:
        self._held: _Held | None = None
        self._lock = asyncio.Lock()

    async def ranked(self, db: Connection, words: Sequence[str], namespaces: Sequence[str]) -> "Ranked | None":
        """None when there are too many entries to hold. The transaction is one of repeatable reads that has read nothing."""
        async with self._lock:
            held, self._held = self._held, None  # should this not come to its end
            now = await row(db, _NOW, (list(namespaces), list(words), None if held is None else held.snapshot))
            assert now is not None
            snapshot, at, entries, total, queries, complete = now
            if entries > MOST:
                return None
            postings = await _changed(db, held) if held is not None and complete else None
            if postings is None:
                postings = await _built(db)
            await _read(db, postings, queries)

            def gain(having: int, ranks: Any, _length: Any) -> Any:
                return inverse_frequency(total, having) * ranks

            found = await in_thread(lambda: postings.ranked(queries, namespaces, at, gain))
            self._held = _Held(snapshot, postings)
        return found


async def prune(db: Connection) -> None:
    """Drops the changes but the last ones. Who holds what was before them reads everything anew."""
    sql = """UPDATE pruned SET before = kept.at FROM (SELECT at FROM changes ORDER BY at DESC OFFSET %s LIMIT 1) kept
        WHERE before < kept.at RETURNING before"""
    if await row(db, sql, (_KEPT,)) is not None:
        await db.execute("DELETE FROM changes WHERE at < (SELECT before FROM pruned)")


async def _changed(db: Connection, held: _Held) -> "Postings | None":
    """What is held, and what was committed since; None where it must be built anew."""
    found = await rows(db, _CHANGED, (held.snapshot, held.snapshot))
    return held.postings if not found or held.postings.apply(found) else None


async def _built(db: Connection) -> "Postings":
    from agentbox.adapters.memory.postings import Postings

    postings = Postings()
    async with db.cursor(name="entries") as cursor:
        await cursor.execute("SELECT id, namespace, bytes, expires_at FROM entries ORDER BY id")
        while chunk := await cursor.fetchmany(_CHUNK):
            postings.extend(chunk)
    return postings


async def _read(db: Connection, postings: "Postings", words: Sequence[str]) -> None:
    import numpy as np

    wanted = postings.wanted(words)
    late = [(word, among) for word, among in wanted if among is not None]
    found = []
    if late:
        among = sorted(frozenset().union(*(some for _word, some in late)))
        found += await rows(db, _SOME, (among, [word for word, _among in late]))
    if len(late) < len(wanted):
        found += await rows(db, _ALL, ([word for word, among in wanted if among is None],))
    for word, entries, ranks in found:
        postings.take(word, np.fromstring(entries, np.int64, sep=","), np.fromstring(ranks, np.float32, sep=","))
