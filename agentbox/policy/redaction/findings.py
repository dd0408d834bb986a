"""What a detector is and what it finds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TextSpan:
    """A finding: `text[start:end]` belongs to the class `name`."""

    start: int
    end: int
    name: str


Detector = Callable[[str], Iterable[TextSpan]]


def mask(name: str) -> str:
    """What a finding becomes. No detector finds anything in it."""
    return f"[{name.upper()}]"


def mask_spans(text: str, spans: Iterable[TextSpan]) -> tuple[str, list[str]]:
    """The text with every finding replaced, and the class of each. Of findings that overlap, one mask stays."""
    parts, names, position = [], [], 0
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if span.start < position:
            position = max(position, span.end)
            continue
        parts += [text[position : span.start], mask(span.name)]
        names.append(span.name)
        position = span.end
    return "".join([*parts, text[position:]]), names
