"""How two ranked lists become one (reciprocal rank fusion, Cormack, Clarke and Buettcher 2009, k = 60), and scores."""

import math
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
K = 60
LEAST_DEPTH = 50
WEIGHED = 64  # words of a query, the rarest: the rest finds entries, and adds nothing to their score


def depth(limit: int) -> int:
    """How much of each list is fused for so many hits."""
    return max(LEAST_DEPTH, 4 * limit)


def fuse(by_vector: Sequence[T], by_text: Sequence[T]) -> dict[T, float]:
    """The score of each that is in a list: 1.0 is first in both, one missing rank adds nothing."""
    found: dict[T, float] = {}
    for ranked in (by_vector, by_text):
        for rank, one in enumerate(ranked, 1):
            found[one] = found.get(one, 0.0) + (K + 1) / 2 / (K + rank)
    return found


def text_score(bm25: float) -> float:
    """BM25 brought into 0..1."""
    return bm25 / (1 + bm25)


def inverse_frequency(total: int, having: int) -> float:
    """How rare a word is that so many of all entries have; above 0."""
    return math.log(1 + (max(total, having) - having + 0.5) / (having + 0.5))
