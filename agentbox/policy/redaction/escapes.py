"""Decodes escapes of JSON and code, URLs and HTML, with the original offset of each character.
Decoding all would double the cost, so only regions around escapes are searched again.
"""

import re
from array import array
from collections.abc import Iterator

from agentbox.policy.redaction.findings import TextSpan

LEVELS = 2  # nested escapes: a URL in a JSON text, a JSON text in a JSON string
REACH = 256  # characters around an escape that are searched again, up to the next space
_ESCAPE = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([/\\]))|%([0-9A-Fa-f]{2})"
    r"|&#(?:x([0-9A-Fa-f]{1,5})|([0-9]{1,6}));"
)
_SHORT = (("\\\\", "  "), ('\\"', ' "'), *((f"\\{letter}", "  ") for letter in "nrtbf"))
_SPACE = re.compile(r"\s")


class DecodedText:
    """A part of a text without its escapes. `original` maps a finding to the whole text."""

    def __init__(self, text: str, offsets: "array[int]") -> None:
        self.text, self._offsets = text, offsets

    def original(self, span: TextSpan) -> TextSpan:
        """The same finding, in offsets of the original text."""
        return TextSpan(self._offsets[span.start], self._offsets[span.end], span.name)


def blank_escapes(text: str) -> str:
    """The text with escaped line ends, tabs and quotes replaced by spaces, of the same length."""
    if "\\" not in text:
        return text
    for escape, plain in _SHORT:
        text = text.replace(escape, plain)
    return text


def decode_escapes(text: str) -> Iterator[DecodedText]:
    """The parts of a text with escaped characters, decoded: one level, then two."""
    if not any(marker in text for marker in ("\\u", "\\x", "\\/", "%", "&#")):
        return
    for start, end in _regions(text):
        piece, offsets = text[start:end], array("l", range(start, end + 1))
        for _ in range(LEVELS):
            decoded, starts = _decode_once(piece)
            if decoded == piece:
                break
            piece, offsets = decoded, array("l", [offsets[index] for index in starts])
            yield DecodedText(piece, offsets)


def _regions(text: str) -> Iterator[tuple[int, int]]:
    """The regions to search again, in order, without overlap."""
    start = end = -1
    for match in _ESCAPE.finditer(text):
        if match.end() < end:
            continue
        if end < 0 or match.start() - REACH > end:
            if end >= 0:
                yield start, end
            start = _word_start(text, max(0, match.start() - REACH))
        space = _SPACE.search(text, min(len(text), match.end() + REACH))
        end = len(text) if space is None else space.start()
    if end >= 0:
        yield start, end


def _word_start(text: str, position: int) -> int:
    """The start of a word at or after that position, within REACH."""
    space = _SPACE.search(text, position, position + REACH) if position else None
    return position if space is None else space.start()


def _decode_once(text: str) -> tuple[str, "array[int]"]:
    """Decodes one level, with the original offset of each character and of the end."""
    parts: list[str] = []
    starts = array("l")
    position = 0
    for match in _ESCAPE.finditer(text):
        parts += [text[position : match.start()], _character(match)]
        starts.extend(range(position, match.start() + 1))
        position = match.end()
    parts.append(text[position:])
    starts.extend(range(position, len(text) + 1))
    return "".join(parts), starts


def _character(match: re.Match[str]) -> str:
    hexadecimal = match[1] or match[2] or match[4] or match[5]
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    return chr(int(match[6])) if match[6] else match[3]
