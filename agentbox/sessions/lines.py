"""Lines of an agent's output, with the place in its stream from which they can be read again."""

import json
from dataclasses import dataclass
from typing import Any

from agentbox.core.errors import AgentboxError


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
    """The JSON object of a line; None if it is none. Members that Python's parser adds to JSON
    (NaN, Infinity) are refused."""
    try:
        message = json.loads(line.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def encode(message: object) -> bytes:
    """One line of JSON-RPC."""
    text = json.dumps(message, separators=(",", ":"))
    return text.encode() + b"\n"


def _refuse(name: str) -> float:
    raise ValueError(name)
