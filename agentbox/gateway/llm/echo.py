"""The box's key in what a provider says: taken out, whatever piece of a stream it comes in."""

import base64
import json
from typing import Final
from urllib.parse import quote

MASK: Final = b"[REDACTED]"
_SHORTEST: Final = 8  # characters; a shorter key would be found in any text


class Echo:
    """Looks for one key. `found` counts."""

    def __init__(self, key: str) -> None:
        self.found = 0
        self._forms = _forms(key) if len(key) >= _SHORTEST else ()
        self._longest = max((len(form) for form in self._forms), default=1)
        self._held = b""

    def clean(self, data: bytes) -> bytes:
        """A whole text without the key."""
        for form in self._forms:
            if form in data:
                self.found += data.count(form)
                data = data.replace(form, MASK)
        return data

    def feed(self, piece: bytes) -> bytes:
        """The next piece of a stream, less an end that may be the beginning of the key."""
        if not self._forms:
            return piece
        data = self.clean(self._held + piece)
        keep = self._beginning(data)
        self._held = data[len(data) - keep :] if keep else b""
        return data[: len(data) - keep]

    def end(self) -> bytes:
        """What was held back."""
        rest, self._held = self._held, b""
        return rest

    def _beginning(self, data: bytes) -> int:
        """Length of the longest end of the data that a form begins with."""
        for length in range(min(len(data), self._longest - 1), 0, -1):
            end = data[-length:]
            if any(form.startswith(end) for form in self._forms):
                return length
        return 0


def _forms(key: str) -> tuple[bytes, ...]:
    """As it is, as JSON and URLs write it, and in base64."""
    raw = key.encode()
    written = {raw, json.dumps(key)[1:-1].encode(), quote(key, safe="").encode(), base64.b64encode(raw).rstrip(b"=")}
    return tuple(sorted(written | {json.dumps(key)[1:-1].replace("/", "\\/").encode()}, key=len, reverse=True))
