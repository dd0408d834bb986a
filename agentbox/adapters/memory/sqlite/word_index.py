"""The words of `memory.db` in memory: all entries with a word of a query and their BM25, as the
FTS5 index would return."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import apsw

from agentbox.adapters.memory import relevance
from agentbox.adapters.memory.rank_fusion import inverse_frequency
from agentbox.core.storage.sqlite import fetch_all, fetch_one
from agentbox.core.storage.sqlite_text import each_row

if TYPE_CHECKING:
    from agentbox.adapters.memory.postings import Postings, ScoredEntries

MAX_ENTRIES = 2_000_000  # cached entries of 24 bytes; a larger store is searched in SQL
_ENTRY_COLUMNS = ("namespace", "bytes", "expires_at")
_CHUNK = 4096  # rows fetched at once


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The cached postings as of the change `stamp`."""

    stamp: int
    postings: "Postings"


class SqliteWordIndex:
    """Shared by the readers of one store. Each search first updates it to its own snapshot."""

    def __init__(self) -> None:
        self._snapshot: _Snapshot | None = None
        self._lock = threading.Lock()

    def rank(
        self, db: apsw.Connection, words: Sequence[str], namespaces: Sequence[str], now: int
    ) -> "ScoredEntries | None":
        """Return None if there are too many entries to cache, or another reader is ahead of this
        snapshot."""
        total, size = namespace_totals(db, namespaces)
        mean = size / total if total else 1.0

        def gain(entry_count: int, occurrences: Any, length: Any) -> Any:
            return relevance.gain(inverse_frequency(total, entry_count), occurrences, length / mean)

        with self._lock:
            snapshot = self._snapshot_of(db)
            if snapshot is None:
                return None
            for word, numbers in snapshot.postings.missing_postings(words):
                snapshot.postings.add_postings(
                    word, *_read_word(db, word, 0 if numbers is None else min(numbers))
                )
            ranked = snapshot.postings.rank(words, namespaces, now, gain)
        return ranked.scaled(relevance.SCALE)

    def _snapshot_of(self, db: apsw.Connection) -> _Snapshot | None:
        """Return the state of this snapshot, reading what is not cached yet."""
        snapshot, record = (
            self._snapshot,
            fetch_one(db, "SELECT coalesce(max(stamp), 0) FROM changes"),
        )
        assert record is not None
        stamp: int = record[0]
        if snapshot is not None and snapshot.stamp > stamp:
            return None
        if snapshot is None or snapshot.stamp < stamp:
            self._snapshot = None  # dropped if the update fails
            self._snapshot = snapshot = _apply_changes(db, snapshot, stamp) or _build(db, stamp)
        if snapshot is not None and len(snapshot.postings) > MAX_ENTRIES:
            self._snapshot = snapshot = None
        return snapshot


def namespace_totals(db: apsw.Connection, namespaces: Sequence[str]) -> tuple[int, int]:
    """Return entries and bytes of the namespaces."""
    marks = ", ".join("?" for _ in namespaces)
    sql = (
        f"SELECT coalesce(sum(entries), 0), coalesce(sum(bytes), 0) FROM namespaces "
        f"WHERE name IN ({marks})"
    )
    total, size = fetch_all(db, sql, namespaces)[0]
    return total, size


def _apply_changes(db: apsw.Connection, snapshot: _Snapshot | None, stamp: int) -> _Snapshot | None:
    """Apply the changes since to the cache; None if some of them are no longer recorded."""
    if snapshot is None:
        return None
    sql = """
        SELECT c.entry, e.namespace, e.bytes, e.expires_at FROM changes c LEFT JOIN entries e
        ON e.id = c.entry
        WHERE c.stamp > ? ORDER BY c.stamp"""
    changes = list(each_row(db, sql, (snapshot.stamp,), ("entry", *_ENTRY_COLUMNS), key_columns=2))
    if len(changes) != stamp - snapshot.stamp or not snapshot.postings.apply(changes):
        return None
    return _Snapshot(stamp, snapshot.postings)


def _build(db: apsw.Connection, stamp: int) -> _Snapshot | None:
    from agentbox.adapters.memory.postings import Postings

    if fetch_all(db, "SELECT coalesce(sum(entries), 0) FROM namespaces")[0][0] > MAX_ENTRIES:
        return None
    postings = Postings()
    sql = f"SELECT id, {', '.join(_ENTRY_COLUMNS)} FROM entries ORDER BY id"
    cursor = each_row(db, sql, (), ("id", *_ENTRY_COLUMNS), key_columns=2)
    while chunk := list(islice(cursor, _CHUNK)):
        postings.extend(chunk)
    return _Snapshot(stamp, postings)


def _read_word(db: apsw.Connection, word: str, from_number: int) -> tuple[Any, Any]:
    """Return the entries with a word from a number on, and its occurrences."""
    import numpy as np

    sql = f"""
        SELECT coalesce(group_concat(entry), ''), coalesce(group_concat(n), '') FROM (
            SELECT rowid AS entry, {relevance.OCCURRENCES}(words_of) AS n FROM words_of
            WHERE words_of MATCH ? AND rowid >= ?
            LIMIT -1 OFFSET 0)"""  # without LIMIT SQLite calls it for rows that FTS5 lacks
    ((entries, occurrences),) = fetch_all(db, sql, (word, from_number))
    return np.fromstring(entries, np.int64, sep=","), np.fromstring(occurrences, np.int64, sep=",")
