"""Server-sent events as they pass: whole ones only, each with its data where that tells tokens (HTML standard 9.2)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

LONGEST: Final = 4 << 20  # bytes of one event; more is passed on as it comes and not looked into
_TELLING: Final = (b'"usage', b'"finishReason"')


class Events:
    """Cuts a stream at its blank lines."""

    def __init__(self) -> None:
        self._held = b""
        self._from = 0  # up to there no end was found

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Every event that is whole now, its blank line included."""
        self._held += piece
        while True:
            end = self._end()
            if end < 0:
                break
            event, self._held, self._from = self._held[:end], self._held[end:], 0
            yield event
        if len(self._held) > LONGEST:
            yield self.end()

    def end(self) -> bytes:
        """What is left."""
        rest, self._held, self._from = self._held, b"", 0
        return rest

    def _end(self) -> int:
        ends = [
            at + len(mark) for mark in (b"\n\n", b"\r\n\r\n", b"\r\r") if (at := self._held.find(mark, self._from)) >= 0
        ]
        self._from = max(0, len(self._held) - 3)
        return min(ends, default=-1)


def told(event: bytes) -> Mapping[str, Any] | None:
    """The data of an event that may tell tokens; None for all others, which nobody needs to parse."""
    if not any(word in event for word in _TELLING):
        return None
    lines = event.splitlines()
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
