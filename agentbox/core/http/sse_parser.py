"""Incremental parser of server-sent events (HTML standard, 9.2)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SseEvent:
    """One event. `id` is the last id seen, which a reconnecting client sends back."""

    id: str
    event: str
    data: str


class SseParser:
    """Accepts bytes split anywhere, even inside a character."""

    def __init__(self) -> None:
        self._buffer = b""
        self._id = ""
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events completed by this chunk. An event without its final empty line is not
        delivered.
        """
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        events = (
            self._parse_line(line.removesuffix(b"\r").decode("utf-8", "replace")) for line in lines
        )
        return [event for event in events if event is not None]

    def _parse_line(self, line: str) -> SseEvent | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._event = value
        elif field == "id":
            self._id = value
        return None

    def _dispatch(self) -> SseEvent | None:
        event, data = self._event, self._data
        self._event, self._data = "", []
        return SseEvent(self._id, event or "message", "\n".join(data)) if data else None
