"""Lines of an agent's output, with the place in its stream from which they can be read again."""

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Final

from agentbox.core.errors import AgentboxError

MAX_DEPTH: Final = 64  # arrays and objects of a message in each other
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class LineTooLong(AgentboxError):
    """A line is longer than `acp.max_message`."""


@dataclass(frozen=True)
class Place:
    """Where a line begins: after `skip` bytes of what comes after `cursor` in the stream."""

    cursor: int = 0
    skip: int = 0


class LineReader:
    """Splits chunks into lines. `place` is the beginning of the line that is not complete yet; a
    reader that is made with it, and is fed the chunks after its cursor, yields the same lines."""

    def __init__(self, place: Place, limit: int) -> None:
        self.place, self._limit = place, limit
        self._skip = place.skip
        self._partial = bytearray()
        self._before = place.cursor  # cursor of the chunk before the newest
        self._last = place.cursor

    def feed(self, cursor: int, data: bytes) -> list[bytes]:
        """The lines that end in this chunk, without their ends. Raises LineTooLong."""
        before, self._last = self._last, cursor
        skipped = min(self._skip, len(data)) if self._skip else 0
        if skipped:
            self._skip -= skipped
            data = data[skipped:]
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = bytes(self._partial) + lines[0]
            self._partial = bytearray(rest)
            consumed = skipped + len(data) - len(rest)
            self.place = Place(before, consumed) if rest else Place(cursor)
        else:
            self._partial += rest
        if len(self._partial) > self._limit or any(len(line) > self._limit for line in lines):
            raise LineTooLong(f"a line is longer than {self._limit} bytes (acp.max_message)")
        return lines

    @property
    def partial(self) -> bytes:
        """The beginning of the line that is not complete."""
        return bytes(self._partial)


def parse(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line; None if it is none, is nested too deeply, or has a number that
    JSON does not have (NaN, Infinity, 1e999). Halves of surrogate pairs, which are no text, become
    U+FFFD: neither UTF-8 nor SQLite can hold them."""
    try:
        message = json.loads(line.decode(), parse_constant=_refuse, parse_float=_finite)
        if isinstance(message, dict) and is_nested_deeper(message, MAX_DEPTH):
            return None
        if _SURROGATE_ESCAPE.search(line) is not None:
            text = json.dumps(message, ensure_ascii=False)
            message = json.loads(_SURROGATE.sub("\ufffd", text))
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def is_nested_deeper(value: object, limit: int) -> bool:
    """Whether arrays and objects lie in each other more than `limit` times."""
    level: list[Any] = [value]
    for _ in range(limit + 1):
        level = [
            member
            for one in level
            for member in (one.values() if isinstance(one, dict) else one)
            if isinstance(member, dict | list)
        ]
        if not level:
            return False
    return True


def encode(message: object) -> bytes:
    """One line of JSON-RPC."""
    text = json.dumps(message, separators=(",", ":"))
    return text.encode() + b"\n"


def _refuse(name: str) -> float:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
