"""Removes the box's key from provider responses, also across chunks of a stream."""

import base64
import json
from typing import Final
from urllib.parse import quote

MASK: Final = b"[REDACTED]"
_MIN_KEY: Final = 8  # characters; a shorter key would match any text


class KeyScrubber:
    """Searches for one key. `occurrences` counts the matches."""

    def __init__(self, key: str) -> None:
        self.occurrences = 0
        self._encodings = _encodings(key) if len(key) >= _MIN_KEY else ()
        self._max_length = max((len(form) for form in self._encodings), default=1)
        self._pending = b""

    def scrub(self, data: bytes) -> bytes:
        """Removes the key from a complete text."""
        for encoding in self._encodings:
            if encoding in data:
                self.occurrences += data.count(encoding)
                data = data.replace(encoding, MASK)
        return data

    def feed(self, chunk: bytes) -> bytes:
        """Returns the next chunk, holding back an end that may be the beginning of the key."""
        if not self._encodings:
            return chunk
        data = self.scrub(self._pending + chunk)
        tail_length = self._partial_match_length(data)
        self._pending = data[len(data) - tail_length :] if tail_length else b""
        return data[: len(data) - tail_length]

    def finish(self) -> bytes:
        """Returns the data held back."""
        remainder, self._pending = self._pending, b""
        return remainder

    def _partial_match_length(self, data: bytes) -> int:
        """Length of the longest suffix that is a prefix of an encoding of the key."""
        for length in range(min(len(data), self._max_length - 1), 0, -1):
            tail = data[-length:]
            if any(encoding.startswith(tail) for encoding in self._encodings):
                return length
        return 0


def _encodings(key: str) -> tuple[bytes, ...]:
    """The key as it is, escaped as in JSON and in URLs, and in base64."""
    raw = key.encode()
    encodings = {
        raw,
        json.dumps(key)[1:-1].encode(),
        quote(key, safe="").encode(),
        base64.b64encode(raw).rstrip(b"="),
    }
    return tuple(
        sorted(
            encodings | {json.dumps(key)[1:-1].replace("/", "\\/").encode()}, key=len, reverse=True
        )
    )
