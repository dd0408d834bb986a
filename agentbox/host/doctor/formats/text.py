"""A scorecard for people."""

from collections.abc import Iterator
from typing import Final

from agentbox.host.doctor.row import STATES, Row, Scorecard, State

_WORDS: Final[dict[State, str]] = {
    "good": "good",
    "note": "note",
    "warning": "warning",
    "unknown": "unknown",
    "bad": "BAD",
}


def text(card: Scorecard) -> str:
    """A line a row, its advice below it; what failed is named again at the end."""
    return "\n".join([*_lines(card), "", _sum(card), *(f"FAILED  {row.name}: {row.said}" for row in card.failed)])


def _lines(card: Scorecard) -> Iterator[str]:
    width = max((len(row.check) for row in card.rows), default=0)
    for row in card.rows:
        yield f"{_WORDS[row.state]:<8} {row.check:<{width}}  {row.said}{_controls(row)}"
        if row.advice:
            yield f"{'':<8} {'':<{width}}    -> {row.advice}"


def _controls(row: Row) -> str:
    return f"  [{', '.join(row.controls)}]" if row.controls else ""


def _sum(card: Scorecard) -> str:
    counts = card.counts
    return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state]) or "nothing was looked at"
