"""A text as its reader will see it: escapes of JSON and code, of URLs and of HTML undone, with the place that each character had.

A whole second reading costs as much as the first, so that only what stands around an escape is read again.
"""

import re
from array import array
from collections.abc import Iterator

from agentbox.policy.redaction.findings import Span

LEVELS = 2  # an escape within an escape: a URL in a JSON text, a JSON text in a JSON string
REACH = 256  # characters around an escape that are read again, and on to the next space
_ESCAPE = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([/\\]))|%([0-9A-Fa-f]{2})|&#(?:x([0-9A-Fa-f]{1,5})|([0-9]{1,6}));"
)
_SHORT = (("\\\\", "  "), ('\\"', ' "'), *((f"\\{letter}", "  ") for letter in "nrtbf"))
_SPACE = re.compile(r"\s")


class Unescaped:
    """A part of a text without its escapes. `original` gives the place of a finding in the whole."""

    def __init__(self, text: str, places: "array[int]") -> None:
        self.text, self._places = text, places

    def original(self, span: Span) -> Span:
        """The same finding, by its place in the first text."""
        return Span(self._places[span.start], self._places[span.end], span.name)


def spaced(text: str) -> str:
    """The text with line ends, tabs and quotes that are escaped, each at its place: it is as long as before."""
    if "\\" not in text:
        return text
    for escape, plain in _SHORT:
        text = text.replace(escape, plain)
    return text


def unescaped(text: str) -> Iterator[Unescaped]:
    """The parts of a text that hold escapes of single characters, without them: first of one level, then of two."""
    if not any(mark in text for mark in ("\\u", "\\x", "\\/", "%", "&#")):
        return
    for start, end in _around(text):
        part, places = text[start:end], array("l", range(start, end + 1))
        for _ in range(LEVELS):
            new, starts = _undone(part)
            if new == part:
                break
            part, places = new, array("l", [places[at] for at in starts])
            yield Unescaped(part, places)


def _around(text: str) -> Iterator[tuple[int, int]]:
    """What is to be read again, in order, and none of it twice."""
    start = end = -1
    for found in _ESCAPE.finditer(text):
        if found.end() < end:
            continue
        if end < 0 or found.start() - REACH > end:
            if end >= 0:
                yield start, end
            start = _word(text, max(0, found.start() - REACH))
        space = _SPACE.search(text, min(len(text), found.end() + REACH))
        end = len(text) if space is None else space.start()
    if end >= 0:
        yield start, end


def _word(text: str, at: int) -> int:
    """The beginning of a word at or after that place, not after REACH more."""
    space = _SPACE.search(text, at, at + REACH) if at else None
    return at if space is None else space.start()


def _undone(text: str) -> tuple[str, "array[int]"]:
    """The text with one level undone, and where each character (and its end) was."""
    pieces: list[str] = []
    starts = array("l")
    at = 0
    for found in _ESCAPE.finditer(text):
        pieces += [text[at : found.start()], _character(found)]
        starts.extend(range(at, found.start() + 1))
        at = found.end()
    pieces.append(text[at:])
    starts.extend(range(at, len(text) + 1))
    return "".join(pieces), starts


def _character(found: re.Match[str]) -> str:
    hexadecimal = found[1] or found[2] or found[4] or found[5]
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    return chr(int(found[6])) if found[6] else found[3]
