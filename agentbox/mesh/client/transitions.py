"""The states of a client and its eighteen numbered transitions."""

from collections.abc import Mapping
from typing import Literal

State = Literal[
    "idle",
    "registering",
    "resolving",
    "active",
    "suspect",
    "partitioned",
    "backoff",
    "refused",
    "evicted",
    "leaving",
    "closed",
]
STATES: tuple[State, ...] = (
    "idle",
    "registering",
    "resolving",
    "active",
    "suspect",
    "partitioned",
    "backoff",
    "refused",
    "evicted",
    "leaving",
    "closed",
)
SESSION_STATES: frozenset[State] = frozenset(
    {"resolving", "active", "suspect", "partitioned"}
)  # states with a session

TRANSITIONS: Mapping[int, tuple[frozenset[State], frozenset[State]]] = {
    1: (frozenset({"idle"}), frozenset({"registering"})),
    2: (frozenset({"registering"}), frozenset({"resolving"})),
    3: (frozenset({"registering"}), frozenset({"backoff"})),
    4: (frozenset({"registering"}), frozenset({"refused"})),
    5: (frozenset({"backoff"}), frozenset({"registering"})),
    6: (frozenset({"refused"}), frozenset({"registering"})),
    7: (frozenset({"resolving"}), frozenset({"active"})),
    8: (frozenset({"active"}), frozenset({"active"})),
    9: (frozenset({"active"}), frozenset({"active"})),
    10: (frozenset({"active"}), frozenset({"suspect"})),
    11: (frozenset({"suspect"}), frozenset({"active"})),
    12: (frozenset({"suspect"}), frozenset({"partitioned"})),
    13: (frozenset({"partitioned"}), frozenset({"active"})),
    14: (SESSION_STATES, frozenset({"evicted"})),
    15: (frozenset({"evicted"}), frozenset({"registering", "refused"})),
    16: (frozenset({"active", "suspect", "partitioned"}), frozenset({"refused"})),
    17: (frozenset(STATES) - {"closed", "leaving"}, frozenset({"leaving"})),
    18: (frozenset({"leaving"}), frozenset({"closed"})),
}


def check_transition(number: int, old: State, new: State) -> None:
    """Raises AssertionError for a transition missing from the table, which is a bug."""
    before, after = TRANSITIONS[number]
    is_valid = old in before and new in after
    assert is_valid, f"transition {number} does not lead from {old} to {new}"
