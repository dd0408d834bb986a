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
        header = {"version": 2, "width": COLUMNS, "height": text.count("\n") + 1, "title": self.title}
        lines = [json.dumps(header), *(json.dumps([at, "o", text.replace("\n", "\r\n")]) for at, text in self.events)]
        path.write_text("\n".join(lines) + "\n")

    @classmethod
    def read(cls, path: Path) -> "Recording":
        """A recording that `write` stored. Raises OSError and ValueError."""
        header, *events = (json.loads(line) for line in path.read_text().splitlines())
        return cls(header["title"], tuple((seconds, text.replace("\r\n", "\n")) for seconds, _, text in events))
