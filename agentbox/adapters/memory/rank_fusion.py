"""Combination of two ranked lists (reciprocal rank fusion, Cormack, Clarke and Buettcher 2009, k =
60), and scores."""

import math
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
K = 60
MIN_DEPTH = 50
MAX_WEIGHTED_WORDS = (
    64  # the rarest words of a query; other words match entries without adding to the score
)


def fusion_depth(limit: int) -> int:
    """Return how many entries of each list are fused for a number of hits."""
    return max(MIN_DEPTH, 4 * limit)


def fuse(by_vector: Sequence[T], by_text: Sequence[T]) -> dict[T, float]:
    """Return the score of each listed item: 1.0 is first in both lists; a missing rank adds
    nothing."""
    scores: dict[T, float] = {}
    for ranked in (by_vector, by_text):
        for rank, item in enumerate(ranked, 1):
            scores[item] = scores.get(item, 0.0) + (K + 1) / 2 / (K + rank)
    return scores


def text_score(bm25: float) -> float:
    """Map BM25 to 0..1."""
    return bm25 / (1 + bm25)


def inverse_frequency(total: int, matching: int) -> float:
    """Return the inverse document frequency of a word in `matching` of `total` entries; > 0."""
    return math.log(1 + (max(total, matching) - matching + 0.5) / (matching + 0.5))
