"""The vectors of `memory.db` as one matrix in memory, so that a search need not compare each one in
SQL.

The index only selects candidates: sqlite-vec measures them, and `Candidates.upper_bound` limits all
others. So the ranking equals that of a full scan (docs/adr/0024).
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import apsw

from agentbox.core.storage.sqlite import fetch_all, fetch_one
from agentbox.core.storage.sqlite_text import each_row

MAX_VECTORS = 200_000  # cached vectors of 1 KiB; a larger store is scanned
# Two float32 sums of 256 products of vectors of norm 1 differ from the true one by at most 256 *
# 2^-24 each, and the norms that sqlite-vec divides by by as much again (Higham, Accuracy and
# Stability of Numerical Algorithms, 3.1): 6e-5 in all.
SLACK = 1e-4
_CHUNK = 4096  # rows fetched at once


@dataclass(frozen=True, slots=True)
class Candidates:
    """Possible nearest entries; the cosine of any other entry of the namespaces is at most
    `upper_bound` (-2: there is none)."""

    entries: list[int]
    upper_bound: float


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The cached vectors as of `stamp`. A removed entry is -1 or excluded by SQL."""

    stamp: int
    entries: Any  # int64
    spaces: Any  # int32, by `names`
    matrix: Any  # float32, with spare rows
    names: dict[str, int]


class VectorIndex:
    """Shared by the readers of one store. Each search first updates it to its own snapshot."""

    def __init__(self, dims: int) -> None:
        self._dims = dims
        self._snapshot: _Snapshot | None = None
        self._lock = threading.Lock()

    def candidates(
        self, db: apsw.Connection, vector: bytes, namespaces: Sequence[str], count: int
    ) -> Candidates | None:
        """Return about `count` candidates, at least these. None if there are too many vectors to
        cache, or another reader is ahead of this snapshot."""
        import numpy as np

        with self._lock:
            snapshot = self._snapshot_of(db)
        if snapshot is None:
            return None
        # einsum instead of BLAS, whose threads busy-wait for each other on a loaded machine
        cosines = np.einsum(
            "ij,j->i", snapshot.matrix[: len(snapshot.entries)], np.frombuffer(vector, dtype="<f4")
        )
        entries = snapshot.entries
        if set(snapshot.names) - set(namespaces):
            inside = np.isin(
                snapshot.spaces,
                [snapshot.names[name] for name in namespaces if name in snapshot.names],
            )
            entries, cosines = entries[inside], cosines[inside]
        excess = len(entries) - count
        if excess <= 0:
            return Candidates(entries.tolist(), -2.0)
        order = np.argpartition(cosines, excess)
        last = float(cosines[order[excess]])
        # any of them may be measured as the last one
        nearest = np.flatnonzero(cosines > last - 2 * SLACK)
        if len(nearest) <= 2 * count:
            return Candidates(entries[nearest].tolist(), last - SLACK)
        return Candidates(entries[order[excess:]].tolist(), last + SLACK)

    def _snapshot_of(self, db: apsw.Connection) -> _Snapshot | None:
        """Return the state of this snapshot, reading what is not cached yet."""
        snapshot, record = self._snapshot, fetch_one(db, "SELECT last FROM stamps")
        assert record is not None
        stamp: int = record[0]
        if snapshot is not None and snapshot.stamp > stamp:
            return None
        if snapshot is None or snapshot.stamp < stamp:
            self._snapshot = snapshot = self._extend(db, snapshot, stamp)
        return snapshot

    def _extend(
        self, db: apsw.Connection, snapshot: _Snapshot | None, stamp: int
    ) -> _Snapshot | None:
        import numpy as np

        since = -1 if snapshot is None else snapshot.stamp
        added = fetch_all(db, "SELECT count(*) FROM vectors WHERE stamp > ?", (since,))[0][0]
        if snapshot is None or len(snapshot.entries) + added > len(snapshot.matrix):
            total = fetch_all(db, "SELECT coalesce(sum(entries), 0) FROM namespaces")[0][0]
            if total > MAX_VECTORS:
                return None
            matrix = np.empty((total + max(_CHUNK, total // 4), self._dims), dtype="<f4")
            since, snapshot = (
                -1,
                _Snapshot(-1, np.empty(0, np.int64), np.empty(0, np.int32), matrix, {}),
            )
        return self._append(db, snapshot, since, stamp)

    def _append(
        self, db: apsw.Connection, snapshot: _Snapshot, since: int, stamp: int
    ) -> _Snapshot:
        """Return the cache extended by vectors stored after `since`. Rows that a search may be
        reading are not overwritten."""
        import numpy as np

        entries, spaces, names = snapshot.entries, [snapshot.spaces], dict(snapshot.names)
        sql = (
            "SELECT v.entry, e.namespace, v.vector FROM vectors v JOIN entries e "
            "ON e.id = v.entry WHERE v.stamp > ?"
        )
        cursor = each_row(db, sql, (since,), ("entry", "namespace", "vector"), key_columns=2)
        while chunk := list(islice(cursor, _CHUNK)):
            numbers = np.array([record[0] for record in chunk], np.int64)
            if len(entries) and numbers.min() <= entries.max():  # a reused number
                entries = np.where(np.isin(entries, numbers), -1, entries)
            begin = len(entries)
            snapshot.matrix[begin : begin + len(chunk)] = np.frombuffer(
                b"".join(record[2] for record in chunk), dtype="<f4"
            ).reshape(-1, self._dims)
            entries = np.concatenate([entries, numbers])
            spaces.append(
                np.array([names.setdefault(record[1], len(names)) for record in chunk], np.int32)
            )
        return _Snapshot(stamp, entries, np.concatenate(spaces), snapshot.matrix, names)
