"""Baseline of a branch: a list of every entry at its start, stored out of reach of agents."""

import json
from collections.abc import Iterable
from dataclasses import asdict, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from agentbox.agents.review.copying import BLOCK
from agentbox.core.files.atomic import replace
from agentbox.core.frozen import frozen
from agentbox.policy.limits.registry import INODE_BYTES

_VERSION = 1


class BaselineEntry(NamedTuple):
    """One entry at the start. `kind`: f file, l link, d directory, s skipped (special, or
    unreadable), g named .git. Times in nanoseconds.

    `mtime`, `inode` and `ctime` (which no process can set) are of the source, `copy_inode` and
    `copy_ctime` of the copy. `content` is the SHA-256 of a small file, "" for a large one, and the
    target of a link.
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


@frozen
class GitStart:
    """`head` is the commit of HEAD, "" if there was none yet; `refs` every ref and its content.
    `problem`: why commits of this repository cannot be taken."""

    head: str = ""
    object_format: str = "sha1"
    refs: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


@frozen
class Baseline:
    """`workspace` is the directory that was copied; `rows` by path. `objects`: git object
    directories of the workspace that the branch borrows from; `git`: the repository at its root,
    None without one."""

    workspace: str
    rows: dict[str, BaselineEntry]
    objects: tuple[str, ...] = ()
    git: GitStart | None = None

    @property
    def size(self) -> int:
        """Approximate size of the copy on disk, in bytes."""
        return size_of(len(self.rows), sum(-(-row.size // BLOCK) for row in self.rows.values()))


def size_of(entries: int, blocks: int) -> int:
    """Approximate bytes on disk of so many entries with so many blocks."""
    return INODE_BYTES * entries + BLOCK * blocks


def write(
    path: Path,
    workspace: str,
    objects: tuple[str, ...],
    lines: Iterable[str],
    git: GitStart | None = None,
) -> None:
    """Write what `read` reads; `lines` are the rows as JSON. Atomic. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    header = {"version": _VERSION, "workspace": workspace, "objects": objects}
    head = json.dumps(header | ({} if git is None else {"git": git.to_json()}))
    replace(path, ("\n".join((head, *lines)) + "\n").encode(), mode=0o600, durable=False)


def read(path: Path) -> Baseline | None:
    """None if there is none. Raises ValueError for an invalid file, and OSError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    head, *lines = text.splitlines()
    header = json.loads(head)
    if header.get("version") != _VERSION:
        raise ValueError(f"{path.name} has version {header.get('version')}, not {_VERSION}")
    git = header.get("git")  # absent in a baseline of an earlier release
    rows = (BaselineEntry(*json.loads(line)) for line in lines)
    return Baseline(
        workspace=header["workspace"],
        rows={row.path: row for row in rows},
        objects=tuple(header["objects"]),
        git=None if git is None else GitStart.from_json(git),
    )
