"""Splits a stream of server-sent events, to pass them on complete and to read token usage from them
(HTML standard 9.2).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

MAX_EVENT: Final = 4 << 20  # bytes of one event; longer ones are passed on in parts and not parsed
_MAX_DONE: Final = 64  # bytes of an end mark
_USAGE_MARKERS: Final = (b'"usage', b'"finishReason"')


class EventSplitter:
    """Splits a stream at blank lines."""

    def __init__(self) -> None:
        self._buffer = b""
        self._search_start = 0  # no end was found before this position

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yields every complete event, including its blank line."""
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
        """Returns and clears the buffer."""
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


def is_done(event: bytes) -> bool:
    """Whether the event is the end mark of OpenAI's streams."""
    return len(event) < _MAX_DONE and event.split() in ([b"data:", b"[DONE]"], [b"data:[DONE]"])


def usage_data(event: bytes) -> Mapping[str, Any] | None:
    """The data of an event that may contain token usage; None for all others, which are
    not parsed.
    """
    if not any(marker in event for marker in _USAGE_MARKERS):
        return None
    lines = event.splitlines()
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
