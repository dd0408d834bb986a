"""Detectors and findings."""

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
    """The replacement of a finding. No detector finds anything in it."""
    return f"[{name.upper()}]"


def mask_spans(text: str, spans: Iterable[TextSpan]) -> tuple[str, list[str]]:
    """Replaces all findings; returns the text and the class of each. Overlapping findings get one
    mask.
    """
    parts, names, position = [], [], 0
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if span.start < position:
            position = max(position, span.end)
            continue
        parts += [text[position : span.start], mask(span.name)]
        names.append(span.name)
        position = span.end
    return "".join([*parts, text[position:]]), names
