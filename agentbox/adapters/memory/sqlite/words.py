"""The words of `memory.db` in memory: every entry that has a word of a query, with its BM25, as the FTS5 index would find it."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import apsw

from agentbox.adapters.memory import relevance
from agentbox.adapters.memory.ranking import inverse_frequency
from agentbox.core.storage.sqlite import row, rows
from agentbox.core.storage.sqlite_text import each_row

if TYPE_CHECKING:
    from agentbox.adapters.memory.postings import Postings, Ranked

MOST = 2_000_000  # entries held, 24 bytes each; a store of more is searched by SQL
_OF_ENTRY = ("namespace", "bytes", "expires_at")
_CHUNK = 4096  # rows fetched at once


@dataclass(frozen=True, slots=True)
class _Held:
    """What is held as of the change `stamp`."""

    stamp: int
    postings: "Postings"


class Words:
    """Shared by the readers of one store. Each search first brings it up to what its own snapshot has."""

    def __init__(self) -> None:
        self._held: _Held | None = None
        self._lock = threading.Lock()

    def ranked(self, db: apsw.Connection, words: Sequence[str], namespaces: Sequence[str], now: int) -> "Ranked | None":
        """None when there are too many entries to hold, or another reader is ahead of this snapshot."""
        total, size = counts(db, namespaces)
        mean = size / total if total else 1.0

        def gain(having: int, occurrences: Any, length: Any) -> Any:
            return relevance.gain(inverse_frequency(total, having), occurrences, length / mean)

        with self._lock:
            held = self._as_of(db)
            if held is None:
                return None
            for word, among in held.postings.wanted(words):
                held.postings.take(word, *_having(db, word, 0 if among is None else min(among)))
            found = held.postings.ranked(words, namespaces, now, gain)
        return found.times(relevance.SCALE)

    def _as_of(self, db: apsw.Connection) -> _Held | None:
        """What this snapshot has, read from it where it is not held yet."""
        held, found = self._held, row(db, "SELECT coalesce(max(stamp), 0) FROM changes")
        assert found is not None
        stamp: int = found[0]
        if held is not None and held.stamp > stamp:
            return None
        if held is None or held.stamp < stamp:
            self._held = None  # should it not come to its end
            self._held = held = _changed(db, held, stamp) or _built(db, stamp)
        if held is not None and len(held.postings) > MOST:
            self._held = held = None
        return held


def counts(db: apsw.Connection, namespaces: Sequence[str]) -> tuple[int, int]:
    """Entries and bytes of these namespaces."""
    marks = ", ".join("?" for _ in namespaces)
    sql = f"SELECT coalesce(sum(entries), 0), coalesce(sum(bytes), 0) FROM namespaces WHERE name IN ({marks})"
    total, size = rows(db, sql, namespaces)[0]
    return total, size


def _changed(db: apsw.Connection, held: _Held | None, stamp: int) -> _Held | None:
    """What is held, and what was written since; None where not all of that is known any more."""
    if held is None:
        return None
    sql = """
        SELECT c.entry, e.namespace, e.bytes, e.expires_at FROM changes c LEFT JOIN entries e ON e.id = c.entry
        WHERE c.stamp > ? ORDER BY c.stamp"""
    found = list(each_row(db, sql, (held.stamp,), ("entry", *_OF_ENTRY), named=2))
    if len(found) != stamp - held.stamp or not held.postings.apply(found):
        return None
    return _Held(stamp, held.postings)


def _built(db: apsw.Connection, stamp: int) -> _Held | None:
    from agentbox.adapters.memory.postings import Postings

    if rows(db, "SELECT coalesce(sum(entries), 0) FROM namespaces")[0][0] > MOST:
        return None
    postings = Postings()
    sql = f"SELECT id, {', '.join(_OF_ENTRY)} FROM entries ORDER BY id"
    cursor = each_row(db, sql, (), ("id", *_OF_ENTRY), named=2)
    while chunk := list(islice(cursor, _CHUNK)):
        postings.extend(chunk)
    return _Held(stamp, postings)


def _having(db: apsw.Connection, word: str, first: int) -> tuple[Any, Any]:
    """Which entries from a number on have a word, and how often."""
    import numpy as np

    sql = f"""
        SELECT coalesce(group_concat(entry), ''), coalesce(group_concat(n), '') FROM (
            SELECT rowid AS entry, {relevance.OCCURRENCES}(words_of) AS n FROM words_of WHERE words_of MATCH ? AND rowid >= ?
            LIMIT -1 OFFSET 0)"""  # without a limit SQLite would call the function where FTS5 has no row
    ((entries, occurrences),) = rows(db, sql, (word, first))
    return np.fromstring(entries, np.int64, sep=","), np.fromstring(occurrences, np.int64, sep=",")
