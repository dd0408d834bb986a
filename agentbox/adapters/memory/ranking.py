"""How two ranked lists become one (reciprocal rank fusion, Cormack, Clarke and Buettcher 2009, k = 60), and scores."""

import math
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
K = 60
MIN_DEPTH = 50
MAX_WEIGHTED_WORDS = (
    64  # words of a query, the rarest: the rest finds entries, and adds nothing to their score
)


def fusion_depth(limit: int) -> int:
    """How much of each list is fused for so many hits."""
    return max(MIN_DEPTH, 4 * limit)


def fuse(by_vector: Sequence[T], by_text: Sequence[T]) -> dict[T, float]:
    """The score of each that is in a list: 1.0 is first in both, one missing rank adds nothing."""
    scores: dict[T, float] = {}
    for ranked in (by_vector, by_text):
        for rank, item in enumerate(ranked, 1):
            scores[item] = scores.get(item, 0.0) + (K + 1) / 2 / (K + rank)
    return scores


def text_score(bm25: float) -> float:
    """BM25 brought into 0..1."""
    return bm25 / (1 + bm25)


def inverse_frequency(total: int, matching: int) -> float:
    """How rare a word is that so many of all entries have; above 0."""
    return math.log(1 + (max(total, matching) - matching + 0.5) / (matching + 0.5))
