"""The layers together as one root: entries by path, and where each file's bytes are."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentbox.host.image.tree.entry import Entry, read_entries

_LINKS_AT_MOST = 20


@dataclass(frozen=True)
class Placed:
    """An entry, the layer it is in, and the folder that holds that layer's files."""

    entry: Entry
    layer: str
    root: Path

    @property
    def file(self) -> Path:
        return self.root / self.entry.path


class Root:
    """What a box would see: later layers only add."""

    def __init__(self, placed: Iterable[Placed]) -> None:
        self.all = list(placed)
        self.by_path = {each.entry.path: each for each in self.all}

    @classmethod
    def of(cls, layers: list[dict[str, Any]]) -> "Root":
        """Of rows with `name`, `tree` (folder) and `listed` (tree.json)."""
        return cls(
            Placed(entry, row["name"], Path(row["tree"]))
            for row in layers
            for entry in read_entries(Path(row["listed"]))
        )

    @property
    def files(self) -> list[Placed]:
        return [each for each in self.all if each.entry.type == "file"]

    def resolve(self, path: str) -> Placed | None:
        """What an absolute or root-relative path leads to, links followed; None when it leads nowhere."""
        return self._walk(path, _LINKS_AT_MOST)

    def _walk(self, path: str, budget: int) -> Placed | None:
        at: list[str] = []
        pending = [part for part in path.split("/") if part not in ("", ".")]
        while pending:
            part = pending.pop(0)
            if part == "..":
                at = at[:-1]
                continue
            found = self.by_path.get("/".join([*at, part]))
            if found is None:
                return None
            if found.entry.type != "link":
                at.append(part)
                continue
            if budget == 0:
                return None
            budget -= 1
            target = found.entry.target
            at = [] if target.startswith("/") else at
            pending = [part for part in target.split("/") if part not in ("", ".")] + pending
        return self.by_path.get("/".join(at))
