"""Relevance of an entry for a query: BM25 (Robertson and Zaragoza 2009) over the requested
namespaces.

The `bm25` of FTS5 counts over the whole store, which would reveal words of other namespaces.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final

import apsw

NAME: Final = "relevance"
OCCURRENCES: Final = "occurrences"
_K1, _B = 1.2, 0.75
SCALE: Final = _K1 + 1


def register(db: apsw.Connection) -> None:
    """Register `relevance(table, length, weights)`: `length` is relative to the mean, `weights` are
    from `pack_weights`; and `occurrences(table)`: how often an entry has the first word of the
    query."""
    db.register_fts5_function(NAME, _relevance)
    db.register_fts5_function(OCCURRENCES, _occurrences)


def gain(weight: float, occurrences: Any, length: Any) -> Any:
    """Return the score that a word adds; their sum is `relevance` without its last factor."""
    return weight * occurrences / (occurrences + _K1 * (1 - _B + _B * length))


def pack_weights(weights: Sequence[float]) -> bytes:
    """Encode one weight per phrase of the query, in order; phrases without one weigh 0."""
    return struct.pack(f"<{len(weights)}d", *weights)


def _relevance(api: apsw.FTS5ExtensionApi, *args: Any) -> float:
    length, weights = args
    if (weighted := api.aux_data) is None:  # cached for the query
        weighted = api.aux_data = tuple(enumerate(struct.unpack(f"<{len(weights) // 8}d", weights)))
    base, offsets, score = _K1 * (1 - _B + _B * length), api.phrase_column_offsets, 0.0
    for phrase, weight in weighted:
        if occurrences := len(offsets(phrase, 0)):
            score += weight * occurrences / (occurrences + base)
    return score * SCALE


def _occurrences(api: apsw.FTS5ExtensionApi, *_args: Any) -> int:
    return len(api.phrase_column_offsets(0, 0))
