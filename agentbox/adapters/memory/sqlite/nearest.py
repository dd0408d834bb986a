"""The vectors of `memory.db` beside each other in memory, so that a search need not compare each of them by SQL.

What this finds is a choice of candidates, never the answer: sqlite-vec measures the candidates, and `Near.beyond` says what
none of the others can exceed. So the ranking is that of a whole scan (docs/adr/0024).
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import apsw

from agentbox.core.storage.sqlite import row, rows
from agentbox.core.storage.sqlite_text import each_row

MOST = 200_000  # vectors held, 1 KiB each; a store of more is scanned
# Two float32 sums of 256 products of vectors of norm 1 differ from the true one by at most 256 * 2^-24 each, and the norms that
# sqlite-vec divides by by as much again (Higham, Accuracy and Stability of Numerical Algorithms, 3.1): 6e-5 in all.
SLACK = 1e-4
_CHUNK = 4096  # rows fetched at once


@dataclass(frozen=True, slots=True)
class Near:
    """Entries that may be the nearest; the cosine of any other of these namespaces is at most `beyond` (-2: there is none)."""

    entries: list[int]
    beyond: float


@dataclass(frozen=True, slots=True)
class _Held:
    """What is held as of `stamp`. A row whose entry is gone has the entry -1, or is found out by SQL."""

    stamp: int
    entries: Any  # int64
    spaces: Any  # int32, by `names`
    matrix: Any  # float32, with room at its end
    names: dict[str, int]


class Vectors:
    """Shared by the readers of one store. Each search first brings it up to what its own snapshot has."""

    def __init__(self, dims: int) -> None:
        self._dims = dims
        self._held: _Held | None = None
        self._lock = threading.Lock()

    def near(self, db: apsw.Connection, vector: bytes, namespaces: Sequence[str], most: int) -> Near | None:
        """About `most` candidates; at least these. None when there are too many vectors to hold, or another reader is ahead
        of this snapshot."""
        import numpy as np

        with self._lock:
            held = self._as_of(db)
        if held is None:
            return None
        # einsum, not a product of BLAS, whose threads spin for each other on a busy machine
        cosines = np.einsum("ij,j->i", held.matrix[: len(held.entries)], np.frombuffer(vector, dtype="<f4"))
        entries = held.entries
        if set(held.names) - set(namespaces):
            inside = np.isin(held.spaces, [held.names[name] for name in namespaces if name in held.names])
            entries, cosines = entries[inside], cosines[inside]
        cut = len(entries) - most
        if cut <= 0:
            return Near(entries.tolist(), -2.0)
        order = np.argpartition(cosines, cut)
        last = float(cosines[order[cut]])
        close = np.flatnonzero(cosines > last - 2 * SLACK)  # any of them may be measured as the last one
        if len(close) <= 2 * most:
            return Near(entries[close].tolist(), last - SLACK)
        return Near(entries[order[cut:]].tolist(), last + SLACK)

    def _as_of(self, db: apsw.Connection) -> _Held | None:
        """What this snapshot has, read from it where it is not held yet."""
        held, found = self._held, row(db, "SELECT last FROM stamps")
        assert found is not None
        stamp: int = found[0]
        if held is not None and held.stamp > stamp:
            return None
        if held is None or held.stamp < stamp:
            self._held = held = self._extended(db, held, stamp)
        return held

    def _extended(self, db: apsw.Connection, held: _Held | None, stamp: int) -> _Held | None:
        import numpy as np

        since = -1 if held is None else held.stamp
        new = rows(db, "SELECT count(*) FROM vectors WHERE stamp > ?", (since,))[0][0]
        if held is None or len(held.entries) + new > len(held.matrix):
            total = rows(db, "SELECT coalesce(sum(entries), 0) FROM namespaces")[0][0]
            if total > MOST:
                return None
            room = np.empty((total + max(_CHUNK, total // 4), self._dims), dtype="<f4")
            since, held = -1, _Held(-1, np.empty(0, np.int64), np.empty(0, np.int32), room, {})
        return self._with(db, held, since, stamp)

    def _with(self, db: apsw.Connection, held: _Held, since: int, stamp: int) -> _Held:
        """What is held, and what was stored after `since`. Nothing that a search may be reading is written over."""
        import numpy as np

        entries, spaces, names = held.entries, [held.spaces], dict(held.names)
        sql = "SELECT v.entry, e.namespace, v.vector FROM vectors v JOIN entries e ON e.id = v.entry WHERE v.stamp > ?"
        cursor = each_row(db, sql, (since,), ("entry", "namespace", "vector"), named=2)
        while chunk := list(islice(cursor, _CHUNK)):
            numbers = np.array([one[0] for one in chunk], np.int64)
            if len(entries) and numbers.min() <= entries.max():  # a number that was free again
                entries = np.where(np.isin(entries, numbers), -1, entries)
            begin = len(entries)
            held.matrix[begin : begin + len(chunk)] = np.frombuffer(
                b"".join(one[2] for one in chunk), dtype="<f4"
            ).reshape(-1, self._dims)
            entries = np.concatenate([entries, numbers])
            spaces.append(np.array([names.setdefault(one[1], len(names)) for one in chunk], np.int32))
        return _Held(stamp, entries, np.concatenate(spaces), held.matrix, names)
