"""Compares a sealed branch with its baseline. Reads the branch only, and follows no link.

No process of the agent runs any more. The branch is untrusted: names, links, modes, types, sizes.
"""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from agentbox.agents.review.autorun import (
    IN_REPOSITORY,
    autorun_reason,
    fold_name,
    is_bare_repository,
)
from agentbox.agents.review.autorun_links import mark_autorun
from agentbox.agents.review.baseline import BaselineEntry
from agentbox.agents.review.branch_files import hash_file, open_agent_directory, open_entry
from agentbox.agents.review.change import FileChange, FileState, SkippedPath
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.linux.path_opener import opened_directory
from agentbox.sandbox.monitor.disk_usage import MAX_DEPTH

_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MODE: Final = 0o1777  # bits that are applied: never setuid, never setgid
WRITABLE_BY_OTHERS: Final = (
    0o022  # write permission of group and others, which an agent cannot grant
)
# Limits on what is cheap for an agent and expensive for its reader:
MAX_PATHS: Final = 100_000  # changed or added
MAX_TEXT: Final = 16 << 20  # characters of these paths and of link targets
_MAX_DISPLAYED: Final = 200  # characters of a path that is too long
MAX_HOLES: Final = 256 << 20  # bytes not backed by blocks on disk
_BLOCK: Final = 512  # of st_blocks (stat(2))
_MAX_PATH: Final = 4095  # bytes, without the final zero (PATH_MAX of linux/limits.h)


class ReviewTooLarge(ValueError):
    """More paths than a review can hold."""


@dataclass
class BranchComparison:
    """`emptied`: directories of the baseline that are missing."""

    changes: list[FileChange] = field(default_factory=list)
    skipped: list[SkippedPath] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)


def compare(sealed: Path, workspace: Path, baseline: dict[str, BaselineEntry]) -> BranchComparison:
    """Changes of the branch since its baseline. The hashes of large files are read from the
    `workspace`, as long as their stat data match the baseline. Raises OSError and ReviewTooLarge.
    """
    comparator = _Comparator(workspace, baseline)
    with open_agent_directory(str(sealed), None) as root:
        comparator.compare_directory("", root, 0)
    return comparator.finish()


class _Comparator:
    def __init__(self, workspace: Path, baseline: dict[str, BaselineEntry]) -> None:
        self._workspace, self._baseline = workspace, baseline
        self._seen: set[str] = set()
        self._result = BranchComparison()
        self._paths = self._text = self._holes = 0

    def compare_directory(
        self, prefix: str, descriptor: int, depth: int, repository: bool = False
    ) -> None:
        """`repository`: inside a bare repository, which git recognises by its files and whose
        `config` it applies."""
        with os.scandir(descriptor) as entries:
            ordered = sorted(entries, key=lambda item: item.name)
        repository = repository or is_bare_repository(item.name for item in ordered)
        for entry in ordered:
            path = f"{prefix}{entry.name}"
            is_directory, row = entry.is_dir(follow_symlinks=False), self._baseline.get(path)
            if row is None or is_directory == (row.kind == "d"):
                self._seen.add(path)
            if _is_git(entry.name):
                if row is None:
                    self._skip(path, "git's own files are not applied")
            elif is_directory and row is None and depth >= MAX_DEPTH:
                self._skip(path, f"deeper than {MAX_DEPTH} directories")
            elif row is None and self._is_too_long(path):
                self._skip(
                    path[:_MAX_DISPLAYED] + "…", f"its path is longer than {_MAX_PATH} bytes"
                )
            elif is_directory:
                with open_agent_directory(entry.name, descriptor) as inner:
                    self.compare_directory(f"{path}/", inner, depth + 1, repository)
            else:
                self._compare_entry(
                    path,
                    entry.name,
                    descriptor,
                    IN_REPOSITORY if repository else autorun_reason(path),
                )

    def finish(self) -> BranchComparison:
        for path, row in self._baseline.items():
            if path in self._seen:
                continue
            if row.kind == "d":
                self._result.emptied.append(path)
            elif row.kind in "fl":
                self._result.changes.append(
                    FileChange(
                        path=path,
                        what="deleted",
                        old=self._old_state(row),
                        new=None,
                        runs=autorun_reason(path),
                    )
                )
        self._result.changes = mark_autorun(self._result.changes, self._links())
        self._result.changes.sort(key=lambda change: (not change.runs, change.path))
        self._result.emptied.sort(reverse=True)
        return self._result

    def _links(self) -> dict[str, str]:
        """All links of the branch and their targets."""
        changed = {change.path: change.new for change in self._result.changes}
        old = {
            path: row.content
            for path, row in self._baseline.items()
            if row.kind == "l" and path not in changed
        }
        return old | {
            path: new.said
            for path, new in changed.items()
            if new is not None and new.kind == "link"
        }

    def _is_too_long(self, path: str) -> bool:
        """Whether its path in the workspace exceeds PATH_MAX."""
        return len(os.fsencode(self._workspace)) + 1 + len(os.fsencode(path)) > _MAX_PATH

    def _compare_entry(self, path: str, name: str, descriptor: int, autorun: str) -> None:
        row = self._baseline.get(path)
        stats = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        if (
            row is not None
            and row.kind in "fl"
            and (stats.st_ino, stats.st_ctime_ns) == (row.copy_inode, row.copy_ctime)
        ):
            return
        notes: list[str] = []
        if stat.S_ISLNK(stats.st_mode):
            target = os.readlink(name, dir_fd=descriptor)
            if not is_inside(path, target):
                if row is None or row.kind != "l" or row.content != target:
                    self._skip(path, "a link out of the workspace")
                return
            new = FileState(kind="link", mode=0, size=len(os.fsencode(target)), said=target)
        elif stat.S_ISREG(stats.st_mode):
            if self._is_too_sparse(name, descriptor, stats):
                self._skip(path, f"the holes of sparse files exceed {MAX_HOLES >> 20} MiB")
                return
            new = self._new_state(
                name, descriptor, stats, row.mode if row is not None and row.kind == "f" else 0
            )
            if stats.st_mode & MODE != new.mode:
                notes.append("write permission for others is not applied")
            if stats.st_mode & (stat.S_ISUID | stat.S_ISGID):
                notes.append("its setuid or setgid bit is not applied")
        else:
            if row is None or row.kind != "s":
                self._skip(path, "neither a file nor a link")
            return
        self._add_change(path, row, new, notes, autorun)

    def _is_too_sparse(self, name: str, descriptor: int, stats: os.stat_result) -> bool:
        """Whether its holes exceed the limit. Missing blocks due to compression or delayed
        allocation are not holes."""
        holes = stats.st_size - stats.st_blocks * _BLOCK
        if holes <= 0:
            return False
        with open_entry(name, descriptor, _FILE_FLAGS) as file:
            if os.lseek(file, 0, os.SEEK_HOLE) >= stats.st_size:
                return False
        self._holes += holes
        return self._holes > MAX_HOLES

    def _add_change(
        self, path: str, row: BaselineEntry | None, new: FileState, notes: list[str], autorun: str
    ) -> None:
        self._count_path(path, new.said)
        if row is None or row.kind not in "fl":
            if new.kind == "file" and new.mode & 0o111:
                notes.append("executable")
            self._result.changes.append(
                FileChange(
                    path=path, what="added", old=None, new=new, runs=autorun, notes=tuple(notes)
                )
            )
            return
        old = self._old_state(row)
        if old == new:
            return
        if old.kind == new.kind == "file" and old.mode != new.mode:
            notes.append(f"mode {old.mode:04o} becomes {new.mode:04o}")
        if not old.said:
            notes.append(
                "the file in the workspace has changed since; its original content is unknown"
            )
        self._result.changes.append(
            FileChange(
                path=path, what="modified", old=old, new=new, runs=autorun, notes=tuple(notes)
            )
        )

    def _old_state(self, row: BaselineEntry) -> FileState:
        if row.kind == "l":
            return FileState(
                kind="link", mode=0, size=len(os.fsencode(row.content)), said=row.content
            )
        content = row.content or _hash_if_unchanged(self._workspace, row)
        return FileState(kind="file", mode=row.mode & MODE, size=row.size, said=content)

    def _new_state(
        self, name: str, descriptor: int, stats: os.stat_result, old_mode: int
    ) -> FileState:
        """Others may write it only where they could before (`old_mode`)."""
        with open_entry(name, descriptor, _FILE_FLAGS) as file_descriptor:
            content, size = hash_file(file_descriptor)
        mode = stats.st_mode & MODE & ~(WRITABLE_BY_OTHERS & ~old_mode)
        return FileState(kind="file", mode=mode, size=size, said=content)

    def _count_path(self, path: str, content: str = "") -> None:
        self._paths += 1
        self._text += len(path) + len(content)
        if self._paths > MAX_PATHS or self._text > MAX_TEXT:
            raise ReviewTooLarge(
                f"more than {MAX_PATHS} changed paths or {MAX_TEXT >> 20} MiB of path names"
            )

    def _skip(self, path: str, reason: str) -> None:
        self._count_path(path)
        self._result.skipped.append(SkippedPath(path=path, why=reason))


def is_inside(path: str, target: str) -> bool:
    """Whether a link at `path` stays in the workspace: relative, and with `..` only at its
    beginning, so that no other link on the way changes its meaning."""
    parts = PurePosixPath(target).parts
    up = next((index for index, name in enumerate(parts) if name != ".."), len(parts))
    return (
        not target.startswith("/")
        and up <= len(PurePosixPath(path).parts) - 1
        and ".." not in parts[up:]
        and not any(map(_is_git, parts))
    )


def _is_git(name: str) -> bool:
    """Names that git, or a file system that folds names, treats as .git."""
    return fold_name(name) in (".git", "git~1")


def _hash_if_unchanged(workspace: Path, row: BaselineEntry) -> str:
    """The hash of the workspace's file if it has not changed since the start; else ""."""
    try:
        with opened_directory(str(workspace)) as root:
            descriptor = open_beneath(root, row.path, _FILE_FLAGS)
    except OSError:
        return ""
    try:
        content, _ = hash_file(descriptor)
        stats = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    unchanged = (stats.st_ino, stats.st_size, stats.st_mtime_ns, stats.st_ctime_ns) == (
        row.inode,
        row.size,
        row.mtime,
        row.ctime,
    )
    return content if unchanged else ""
