"""How well the words of an entry fit a query: BM25 (Robertson and Zaragoza 2009) over the namespaces that are asked.

FTS5's own `bm25` counts over the whole store, so that its values tell which words other namespaces hold.
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
    """Makes `relevance(table, length, weights)` known: `length` is the entry's, the mean being 1; `weights` is one of `packed`.
    And `occurrences(table)`: how often an entry has the first word of the query."""
    db.register_fts5_function(NAME, _relevance)
    db.register_fts5_function(OCCURRENCES, _occurrences)


def gain(weight: float, occurrences: Any, length: Any) -> Any:
    """What a word adds to the score of entries: the sum of these is what `relevance` gives, but for its last factor."""
    return weight * occurrences / (occurrences + _K1 * (1 - _B + _B * length))


def pack_weights(weights: Sequence[float]) -> bytes:
    """One weight for each phrase of the query, in its order; those without one weigh nothing."""
    return struct.pack(f"<{len(weights)}d", *weights)


def _relevance(api: apsw.FTS5ExtensionApi, *args: Any) -> float:
    length, weights = args
    if (weighted := api.aux_data) is None:  # kept for the query
        weighted = api.aux_data = tuple(enumerate(struct.unpack(f"<{len(weights) // 8}d", weights)))
    base, offsets, score = _K1 * (1 - _B + _B * length), api.phrase_column_offsets, 0.0
    for phrase, weight in weighted:
        if occurrences := len(offsets(phrase, 0)):
            score += weight * occurrences / (occurrences + base)
    return score * SCALE


def _occurrences(api: apsw.FTS5ExtensionApi, *_args: Any) -> int:
    return len(api.phrase_column_offsets(0, 0))
