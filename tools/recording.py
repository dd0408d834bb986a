"""A recorded terminal session in the asciicast v2 format, which `asciinema play FILE` plays."""

import json
from dataclasses import dataclass
from pathlib import Path

COLUMNS = 100


@dataclass(frozen=True)
class Recording:
    """What a terminal showed. `events` are (seconds since the start, text) in their order."""

    title: str
    events: tuple[tuple[float, str], ...]

    def write(self, path: Path) -> None:
        """One header, then one line per event."""
        text = "".join(text for _, text in self.events)
        rows = text.count("\n") + 1
        header = {"version": 2, "width": COLUMNS, "height": rows, "title": self.title}
        events = [[seconds, "o", part.replace("\n", "\r\n")] for seconds, part in self.events]
        path.write_text("".join(f"{json.dumps(item)}\n" for item in (header, *events)))

    @classmethod
    def read(cls, path: Path) -> "Recording":
        """A recording that `write` stored. Raises OSError and ValueError."""
        header, *events = (json.loads(line) for line in path.read_text().splitlines())
        parts = ((seconds, text.replace("\r\n", "\n")) for seconds, _, text in events)
        return cls(header["title"], tuple(parts))
