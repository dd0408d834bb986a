"""A tree under construction: files on disk, entries in memory, one owner per path."""

import hashlib
from dataclasses import replace
from pathlib import Path

from agentbox.core.errors import AgentboxError
from agentbox.host.image.tree import paths_and_modes
from agentbox.host.image.tree.entry import TreeEntry


class Tree:
    """Adds paths below `root`. Raises AgentboxError if two owners add different content at a
    path.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._entries: dict[str, TreeEntry] = {}
        root.mkdir(parents=True, exist_ok=True)

    @property
    def entries(self) -> list[TreeEntry]:
        return list(self._entries.values())

    def directory(self, path: str) -> None:
        """Adds a directory and its parents. Mode and owner depend on the path."""
        if path in ("", "."):
            return
        existing = self._entries.get(path)
        if existing is not None and existing.type == "dir":
            return
        self._parents(path)
        mode, uid, gid = paths_and_modes.directory_mode(path)
        if self._add_entry(TreeEntry(path=path, type="dir", mode=mode, uid=uid, gid=gid)):
            self.disk_path(path).mkdir(exist_ok=True)

    def file(self, path: str, data: bytes, owner: str, mode: int = 0o644) -> None:
        """Adds a regular file."""
        self._parents(path)
        digest = hashlib.sha256(data).hexdigest()
        entry = TreeEntry(
            path=path,
            type="file",
            mode=paths_and_modes.file_mode(mode),
            size=len(data),
            sha256=digest,
            owner=owner,
        )
        if self._add_entry(entry):
            self.disk_path(path).write_bytes(data)

    def copy(self, path: str, source: Path, owner: str) -> None:
        """Adds a copy of a file of the store, which keeps only the executable bit of a mode."""
        self.file(
            path, source.read_bytes(), owner, 0o755 if source.stat().st_mode & 0o111 else 0o644
        )

    def adopt(self, path: str, owner: str) -> None:
        """Adds a file that was written below the root by other means."""
        self.file(path, self.disk_path(path).read_bytes(), owner)

    def link(self, path: str, target: str, owner: str) -> None:
        """Adds a symbolic link."""
        self._parents(path)
        if self._add_entry(
            TreeEntry(path=path, type="link", mode=0o777, target=target, owner=owner)
        ):
            self.disk_path(path).symlink_to(target)

    def has(self, path: str) -> bool:
        return path in self._entries

    def disk_path(self, path: str) -> Path:
        return self.root / path

    def _parents(self, path: str) -> None:
        parent, _, _ = path.rpartition("/")
        self.directory(parent)

    def _add_entry(self, entry: TreeEntry) -> bool:
        existing = self._entries.get(entry.path)
        if existing is None:
            self._entries[entry.path] = entry
            return True
        if replace(existing, owner="") != replace(entry, owner=""):
            raise AgentboxError(
                f"cannot put {entry.path} into the tree: {_describe(existing)} and "
                f"{_describe(entry)} differ",
                "A path can have only one owner. Remove one of the packages.",
            )
        return False


def _describe(entry: TreeEntry) -> str:
    text = f"{entry.owner or 'a directory'} ({entry.type}"
    if entry.type == "link":
        return f"{text} to {entry.target})"
    return (
        f"{text}, mode {entry.mode:o}, sha256 {entry.sha256[:12]})"
        if entry.type == "file"
        else f"{text})"
    )
