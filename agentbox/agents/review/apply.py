"""Applies a review to the workspace: completely, or not at all.

New files are first written to a staging directory in the workspace. Then each is exchanged
atomically with the old file, which is compared afterwards. Old files are kept until the last one
was found unchanged since the start of the branch. Every path is opened below the workspace's
descriptor and without following links.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final

from agentbox.agents.review.branch_files import hash_file, open_entry
from agentbox.agents.review.change import FileChange, FileState, Review
from agentbox.agents.review.compare import MODE, WRITABLE_BY_OTHERS
from agentbox.agents.review.conflicts import Conflicts
from agentbox.agents.review.copying import STAGING
from agentbox.agents.review.journal import (
    DIRECTORY_FLAGS,
    CommitJournal,
    CommitStep,
    clean_up,
    inode_of,
    open_parent,
    remove_journal,
    roll_back,
)
from agentbox.core.linux import renames
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.linux.path_opener import open_directory

_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK: Final = 1 << 20
_WRITTEN_REASON: Final = "it was modified while the review was applied; the modification is kept"


class ReviewApplier:
    """One commit. `journal_path` is the path of its journal. `on_step` is called after each step
    that changes something: a hook of tests, which exit there."""

    def __init__(
        self,
        workspace: Path,
        sealed: Path,
        journal_path: Path,
        review: Review,
        on_step: Callable[[], None] = lambda: None,
    ) -> None:
        self._journal_path, self._on_step = journal_path, on_step
        self._review = review
        self._root = open_directory(str(workspace))
        self._sealed = os.open(sealed, DIRECTORY_FLAGS)
        self._journal = CommitJournal(
            workspace=str(workspace), staging=f"{STAGING}{review.agent_id}-{secrets.token_hex(4)}"
        )
        self._changes: list[FileChange] = []  # those still to apply; same index as its step

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self._root)
        os.close(self._sealed)

    def find_conflicts(self) -> dict[str, str]:
        """Paths that cannot be applied now, and why. Prepares the steps. Raises OSError."""
        reasons: dict[str, str] = {}
        deleted = {item.path for item in self._review.changes if item.new is None}
        ordered = sorted(
            self._review.changes, key=lambda change: (change.new is not None, change.path)
        )
        for change in ordered:
            current, reason = self._current_state(change.path, deleted)
            if reason or current not in (change.old, change.new):
                reasons[change.path] = reason or "it has changed since the agent started"
            elif current != change.new:
                self._changes.append(change)
                self._journal.steps.append(CommitStep(change.path, 0, current is not None))
        return reasons

    def apply(self) -> int:
        """Return the number of changed paths. Raises Conflicts or OSError and leaves the workspace
        unchanged."""
        if reasons := self.find_conflicts():
            raise Conflicts(reasons)
        if not self._changes:
            return 0
        self._plan_directories()
        self._journal.write(self._journal_path)
        try:
            self._stage()
            self._journal.phase = "swapping"
            self._journal.write(self._journal_path)
            self._on_step()
            self._swap()
        except BaseException as error:
            preserved = roll_back(self._root, self._journal)
            clean_up(self._root, self._journal)
            remove_journal(self._journal_path)
            if preserved and isinstance(error, Conflicts | OSError):
                reasons = error.reasons if isinstance(error, Conflicts) else {}
                raise Conflicts(
                    {**reasons, **dict.fromkeys(preserved, _WRITTEN_REASON)}, preserved
                ) from error
            raise
        renames.sync_volume(self._root)
        self._journal.phase = "done"
        self._journal.write(self._journal_path)
        self._on_step()
        clean_up(self._root, self._journal)
        self._on_step()
        remove_journal(self._journal_path)
        return len(self._changes)

    def _current_state(self, path: str, deleted: set[str]) -> tuple[FileState | None, str]:
        """The state of the path, or the reason why it is unknown."""
        try:
            with open_parent(self._root, path) as (parent_fd, name):
                if os.fstat(parent_fd).st_dev != os.fstat(self._root).st_dev:
                    return None, "it is on another file system than the workspace"
                stats = os.stat(name, dir_fd=parent_fd, follow_symlinks=False)
                if stat.S_ISDIR(stats.st_mode):  # counts as missing if the file is to be deleted
                    return (
                        None,
                        ""
                        if path in deleted or path in self._review.emptied
                        else "it is a directory now",
                    )
                return file_state(parent_fd, name), ""
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            in_deleted = any(str(ancestor) in deleted for ancestor in PurePosixPath(path).parents)
            if in_deleted or (path in deleted and error.errno == errno.ENOTDIR):
                return None, ""
            return None, "a parent directory is a link or a file now"

    def _plan_directories(self) -> None:
        """Determine which directories to create and to remove."""
        needed = {
            str(item)
            for change in self._changes
            if change.new
            for item in PurePosixPath(change.path).parents
        }
        for directory in sorted(needed - {"."}):
            if not self._is_directory(directory) or directory in {
                change.path for change in self._changes if change.new is None
            }:
                self._journal.made.append(directory)
        for directory in sorted(self._review.emptied):
            if self._is_directory(directory):
                descriptor = open_beneath(self._root, directory)
                self._journal.emptied.append(
                    (directory, stat.S_IMODE(os.fstat(descriptor).st_mode))
                )
                os.close(descriptor)

    def _is_directory(self, path: str) -> bool:
        try:
            os.close(open_beneath(self._root, path))
        except OSError:
            return False
        return True

    def _stage(self) -> None:
        os.mkdir(self._journal.staging, 0o700, dir_fd=self._root)
        self._on_step()
        staging = os.open(self._journal.staging, DIRECTORY_FLAGS, dir_fd=self._root)
        try:
            for number, change in enumerate(self._changes):
                if change.new is not None:
                    self._stage_entry(staging, str(number), change.path, change.new)
                    step = self._journal.steps[number]
                    step.inode, step.content = inode_of(staging, str(number)), change.new.said
                    self._on_step()
        finally:
            os.close(staging)
        renames.sync_volume(self._root)

    def _stage_entry(self, staging: int, name: str, path: str, new: FileState) -> None:
        """Write the content of the review: the sealed copy must have the reviewed hash."""
        if new.kind == "link":
            os.symlink(new.said, name, dir_fd=staging)
            return
        target = os.open(
            name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=staging
        )
        try:
            with (
                open_parent(self._sealed, path) as (parent_fd, entry_name),
                open_entry(entry_name, parent_fd, _FILE_FLAGS) as source,
            ):
                while data := os.read(source, _CHUNK):
                    view = memoryview(data)
                    while view:
                        view = view[os.write(target, view) :]
            os.lseek(target, 0, os.SEEK_SET)
            if hash_file(target)[0] != new.said:
                raise OSError(errno.EIO, "the sealed copy differs from the review", path)
            os.fchmod(target, new.mode)
        finally:
            os.close(target)

    def _swap(self) -> None:
        staging = os.open(self._journal.staging, DIRECTORY_FLAGS, dir_fd=self._root)
        try:
            deletions = [
                number for number, change in enumerate(self._changes) if change.new is None
            ]
            for number in deletions:
                self._swap_entry(staging, number)
            for directory, _ in reversed(self._journal.emptied):
                self._remove_directory(directory)
            for directory in self._journal.made:
                self._make_directory(directory)
            for number in range(len(deletions), len(self._changes)):  # deletions are first
                self._swap_entry(staging, number)
        finally:
            os.close(staging)

    def _swap_entry(self, staging: int, number: int) -> None:
        change, step, staged_name = self._changes[number], self._journal.steps[number], str(number)
        try:
            with open_parent(self._root, step.path) as (parent_fd, name):
                if change.new is None:
                    renames.move(parent_fd, name, staging, staged_name)
                elif step.had:
                    renames.exchange(parent_fd, name, staging, staged_name)
                else:
                    renames.move(staging, staged_name, parent_fd, name)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EEXIST, errno.ELOOP, errno.ENOTDIR):
                raise Conflicts({step.path: "it changed while the review was applied"}) from error
            raise
        self._on_step()
        if step.had and file_state(staging, staged_name) != change.old:
            raise Conflicts({step.path: "it changed while the review was applied"})

    def _remove_directory(self, directory: str) -> None:
        try:
            with open_parent(self._root, directory) as (parent_fd, name):
                os.rmdir(name, dir_fd=parent_fd)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT, errno.EBUSY):
                raise
        self._on_step()

    def _make_directory(self, directory: str) -> None:
        descriptor = open_beneath(self._sealed, directory)
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o777 & ~WRITABLE_BY_OTHERS
        os.close(descriptor)
        try:
            with open_parent(self._root, directory) as (parent_fd, name):
                os.mkdir(name, mode | stat.S_IRWXU, dir_fd=parent_fd)
        except FileExistsError as error:
            raise Conflicts({directory: "it appeared while the review was applied"}) from error
        self._on_step()


def file_state(directory: int, name: str) -> FileState | None:
    """The state of an entry; None if it is neither a file nor a link. Raises OSError."""
    stats = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if stat.S_ISLNK(stats.st_mode):
        target = os.readlink(name, dir_fd=directory)
        return FileState(kind="link", mode=0, size=len(os.fsencode(target)), said=target)
    if not stat.S_ISREG(stats.st_mode):
        return None
    with open_entry(name, directory, _FILE_FLAGS) as descriptor:
        content, size = hash_file(descriptor)
    return FileState(kind="file", mode=stats.st_mode & MODE, size=size, said=content)
