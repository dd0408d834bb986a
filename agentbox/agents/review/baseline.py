"""What a branch started from: a list of every entry, kept where no agent reaches it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agentbox.agents.review.copying import BLOCK
from agentbox.core.files.atomic import replace
from agentbox.policy.limits.registry import INODE_BYTES

_VERSION = 1


class BaselineEntry(NamedTuple):
    """One entry at the start. `kind`: f file, l link, d folder, s left out (special, or unreadable),
    g named .git. Times in nanoseconds.

    `mtime`, `inode` and `changed` (ctime, which no process can set) are of the source, `own_inode` and `own_changed` of
    the copy. `said` is the SHA-256 of a small file, "" of a large one, and where a link leads.
    """

    path: str
    kind: str
    mode: int = 0
    size: int = 0
    mtime: int = 0
    inode: int = 0
    ctime: int = 0
    copy_inode: int = 0
    copy_ctime: int = 0
    content: str = ""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """`workspace` is the folder that was copied; `rows` by path. `objects`: folders of the workspace's repositories that the branch borrows from."""

    workspace: str
    rows: dict[str, BaselineEntry]
    objects: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes that the copy takes on disk, about."""
        return size_of(len(self.rows), sum(-(-row.size // BLOCK) for row in self.rows.values()))


def size_of(entries: int, blocks: int) -> int:
    """Bytes on disk of so many entries whose files take that many blocks, about."""
    return INODE_BYTES * entries + BLOCK * blocks


def write(path: Path, workspace: str, objects: tuple[str, ...], lines: Iterable[str]) -> None:
    """What `read` reads; `lines` are the rows, as JSON. Whole, or not there. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    head = json.dumps({"version": _VERSION, "workspace": workspace, "objects": objects})
    replace(path, ("\n".join((head, *lines)) + "\n").encode(), mode=0o600, durable=False)


def read(path: Path) -> Baseline | None:
    """None when there is none. Raises ValueError for a file that is no such list, and OSError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    head, *lines = text.splitlines()
    header = json.loads(head)
    if header.get("version") != _VERSION:
        raise ValueError(f"{path.name} has version {header.get('version')}, not {_VERSION}")
    rows = (BaselineEntry(*json.loads(line)) for line in lines)
    return Baseline(
        workspace=header["workspace"],
        rows={row.path: row for row in rows},
        objects=tuple(header["objects"]),
    )
