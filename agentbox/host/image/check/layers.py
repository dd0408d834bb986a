"""The layers merged into one root: entries by path, and the path of each file's content."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentbox.host.image.tree.entry import TreeEntry, read_entries

_MAX_LINKS = 20


@dataclass(frozen=True)
class PlacedEntry:
    """An entry, its layer, and the directory with that layer's files."""

    entry: TreeEntry
    layer: str
    root: Path

    @property
    def file(self) -> Path:
        return self.root / self.entry.path


class ImageRoot:
    """The root file system of a box: later layers only add."""

    def __init__(self, placed: Iterable[PlacedEntry]) -> None:
        self.entries = list(placed)
        self.by_path = {item.entry.path: item for item in self.entries}

    @classmethod
    def of(cls, layers: list[dict[str, Any]]) -> "ImageRoot":
        """Create from rows with `name`, `tree` (directory) and `listed` (tree.json)."""
        return cls(
            PlacedEntry(entry, row["name"], Path(row["tree"]))
            for row in layers
            for entry in read_entries(Path(row["listed"]))
        )

    @property
    def files(self) -> list[PlacedEntry]:
        return [placed for placed in self.entries if placed.entry.type == "file"]

    def resolve(self, path: str) -> PlacedEntry | None:
        """Resolve an absolute or root-relative path, following links; None if it does not exist."""
        return self._walk(path, _MAX_LINKS)

    def _walk(self, path: str, budget: int) -> PlacedEntry | None:
        resolved: list[str] = []
        pending = [segment for segment in path.split("/") if segment not in ("", ".")]
        while pending:
            segment = pending.pop(0)
            if segment == "..":
                resolved = resolved[:-1]
                continue
            placed = self.by_path.get("/".join([*resolved, segment]))
            if placed is None:
                return None
            if placed.entry.type != "link":
                resolved.append(segment)
                continue
            if budget == 0:
                return None
            budget -= 1
            target = placed.entry.target
            resolved = [] if target.startswith("/") else resolved
            pending = [
                segment for segment in target.split("/") if segment not in ("", ".")
            ] + pending
        return self.by_path.get("/".join(resolved))
