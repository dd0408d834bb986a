"""Server-sent events as they pass: whole ones only, each with its data where that tells tokens (HTML standard 9.2)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

MAX_EVENT: Final = 4 << 20  # bytes of one event; more is passed on as it comes and not looked into
_USAGE_MARKERS: Final = (b'"usage', b'"finishReason"')


class EventSplitter:
    """Cuts a stream at its blank lines."""

    def __init__(self) -> None:
        self._buffer = b""
        self._search_start = 0  # up to there no end was found

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Every event that is whole now, its blank line included."""
        self._buffer += chunk
        while True:
            end = self._find_end()
            if end < 0:
                break
            event, self._buffer, self._search_start = self._buffer[:end], self._buffer[end:], 0
            yield event
        if len(self._buffer) > MAX_EVENT:
            yield self.flush()

    def flush(self) -> bytes:
        """What is left."""
        remainder, self._buffer, self._search_start = self._buffer, b"", 0
        return remainder

    def _find_end(self) -> int:
        positions = [
            index + len(separator)
            for separator in (b"\n\n", b"\r\n\r\n", b"\r\r")
            if (index := self._buffer.find(separator, self._search_start)) >= 0
        ]
        self._search_start = max(0, len(self._buffer) - 3)
        return min(positions, default=-1)


def usage_data(event: bytes) -> Mapping[str, Any] | None:
    """The data of an event that may tell tokens; None for all others, which nobody needs to parse."""
    if not any(marker in event for marker in _USAGE_MARKERS):
        return None
    lines = event.splitlines()
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
