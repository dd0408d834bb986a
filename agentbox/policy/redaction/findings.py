"""What a detector is and what it finds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A finding: `text[start:end]` belongs to the class `name`."""

    start: int
    end: int
    name: str


Detector = Callable[[str], Iterable[Span]]


def mask(name: str) -> str:
    """What a finding becomes. No detector finds anything in it."""
    return f"[{name.upper()}]"


def masked(text: str, spans: Iterable[Span]) -> tuple[str, list[str]]:
    """The text with every finding replaced, and the class of each. Of findings that overlap, one mask stays."""
    pieces, names, at = [], [], 0
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if span.start < at:
            at = max(at, span.end)
            continue
        pieces += [text[at : span.start], mask(span.name)]
        names.append(span.name)
        at = span.end
    return "".join([*pieces, text[at:]]), names
