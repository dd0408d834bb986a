"""What a branch started from: a list of every entry, kept where no agent reaches it."""

import json
from dataclasses import dataclass
from pathlib import Path

from agentbox.agents.review.copying import Row
from agentbox.limits.registry import INODE_BYTES
from agentbox.supervision.files import replace

_VERSION = 1
_BLOCK = 4096


@dataclass(frozen=True, kw_only=True)
class Start:
    """`workspace` is the folder that was copied; `rows` by path. `objects`: folders of the workspace's repositories that the branch borrows from."""

    workspace: str
    rows: dict[str, Row]
    objects: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes that the copy takes on disk, about."""
        return sum(INODE_BYTES + -(-row.size // _BLOCK) * _BLOCK for row in self.rows.values())


def write(path: Path, start: Start) -> None:
    """One line a row. Whole, or not there. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    head = json.dumps({"version": _VERSION, "workspace": start.workspace, "objects": start.objects})
    lines = [head, *(json.dumps(row, separators=(",", ":")) for row in start.rows.values())]
    replace(path, ("\n".join(lines) + "\n").encode(), mode=0o600, durable=False)


def read(path: Path) -> Start | None:
    """None when there is none. Raises ValueError for a file that is no such list, and OSError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    head, *lines = text.splitlines()
    said = json.loads(head)
    if said.get("version") != _VERSION:
        raise ValueError(f"{path.name} has version {said.get('version')}, not {_VERSION}")
    rows = (Row(*json.loads(line)) for line in lines)
    return Start(workspace=said["workspace"], rows={row.path: row for row in rows}, objects=tuple(said["objects"]))
