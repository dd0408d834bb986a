"""Journal of a commit, written before each phase; recovers a commit that a crash interrupted."""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, Literal, Self

from agentbox.agents.review.branch_files import hash_file, open_entry
from agentbox.core.files.atomic import read_json, replace, sync_directory
from agentbox.core.linux import renames
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.linux.path_opener import open_directory

Phase = Literal["staging", "swapping", "done"]
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class CommitStep:
    """One path. The name of its staged entry is the step's number. `inode`: of the new entry, 0 for
    a deletion. `had`: an entry existed. `content`: SHA-256 of the new file, or target of the new
    link."""

    path: str
    inode: int
    had: bool
    content: str = ""


@dataclass
class CommitJournal:
    """`workspace` is the directory to change, `staging` a directory in it. `made` and `emptied` are
    directories to create and remove, outer ones first; the latter with their modes."""

    workspace: str
    staging: str
    phase: Phase = "staging"
    steps: list[CommitStep] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    emptied: list[tuple[str, int]] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """On disk when it returns. Raises OSError."""
        replace(path, json.dumps(asdict(self)).encode("ascii"), mode=0o600)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """None if there is none. Raises ValueError for an invalid file, and OSError."""
        data = read_json(path)
        if data is None:
            return None
        steps = [CommitStep(**item) for item in data["steps"]]
        emptied = [(str(item[0]), int(item[1])) for item in data["emptied"]]
        return cls(
            workspace=data["workspace"],
            staging=data["staging"],
            phase=data["phase"],
            steps=steps,
            made=data["made"],
            emptied=emptied,
        )


@dataclass(frozen=True)
class RecoveredCommit:
    """`phase`: the one that was interrupted. `preserved`: see `roll_back`."""

    phase: Phase
    preserved: dict[str, str]


def recover(path: Path) -> RecoveredCommit | None:
    """Complete a commit that lacks only its cleanup, and roll back any other. None if no commit was
    interrupted. Concurrent changes are preserved; the previous file then stays in the staging
    directory.

    Raises OSError, and ValueError for an unreadable journal, which is kept.
    """
    journal = CommitJournal.read(path)
    if journal is None:
        return None
    root = open_directory(journal.workspace)
    try:
        preserved = roll_back(root, journal)
        clean_up(root, journal)
    finally:
        os.close(root)
    remove_journal(path)
    return RecoveredCommit(journal.phase, preserved)


def remove_journal(path: Path) -> None:
    """Remove the journal at the end of the commit. Durable."""
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def roll_back(root: int, journal: CommitJournal) -> dict[str, str]:
    """Restore the workspace if the swap had started. Raises OSError.

    A file that was written to after it was applied is preserved: the result has its path and the
    path of its previous file in the workspace ("" for none).
    """
    preserved: dict[str, str] = {}
    with _open_staging(root, journal) as staging:
        if staging is None or journal.phase != "swapping":
            return preserved
        for number, step in reversed(list(enumerate(journal.steps))):
            if step.inode and not _restore_previous(root, staging, str(number), step):
                preserved[step.path] = f"{journal.staging}/{number}" if step.had else ""
        for directory in reversed(journal.made):
            with suppress(OSError), open_parent(root, directory) as (parent_fd, name):
                os.rmdir(name, dir_fd=parent_fd)
        for directory, mode in journal.emptied:
            with suppress(FileExistsError), open_parent(root, directory) as (parent_fd, name):
                os.mkdir(name, mode, dir_fd=parent_fd)
        for number, step in enumerate(journal.steps):
            if not step.inode and inode_of(staging, str(number)):
                with suppress(FileExistsError), open_parent(root, step.path) as (parent_fd, name):
                    renames.move(staging, str(number), parent_fd, name)
    return preserved


def clean_up(root: int, journal: CommitJournal) -> None:
    """Remove the staging directory, with the old files after a complete commit, else with the
    staged ones."""
    with _open_staging(root, journal) as staging:
        if staging is None:
            return
        with os.scandir(staging) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            if (
                journal.phase != "swapping"
                or inode_of(staging, name) == journal.steps[int(name)].inode
            ):
                os.unlink(name, dir_fd=staging)
    with suppress(OSError):  # not empty: preserved files are in it
        os.rmdir(journal.staging, dir_fd=root)


def _restore_previous(root: int, staging: int, number: str, step: CommitStep) -> bool:
    """False if the applied entry was modified: it is left there. Compares what the exchange
    returns, so that no concurrent write is lost."""
    staged = inode_of(staging, number)
    if staged == step.inode:
        return True  # not applied yet
    with suppress(FileNotFoundError), open_parent(root, step.path) as (parent_fd, name):
        if inode_of(parent_fd, name) != step.inode:
            return False  # replaced by another entry
        swap = renames.exchange if staged else renames.move
        swap(parent_fd, name, staging, number)
        replaced = content_of(staging, number)
        if step.content in ("", replaced):
            return True
        if not staged:
            renames.move(staging, number, parent_fd, name)
            return False
        renames.exchange(staging, number, parent_fd, name)
        if content_of(staging, number) != replaced:
            return False
        os.unlink(number, dir_fd=staging)  # the previous file has the same content
    return True


def content_of(directory: int, name: str) -> str:
    """SHA-256 of a file, or the target of a link. Raises OSError."""
    if stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        return os.readlink(name, dir_fd=directory)
    with open_entry(name, directory, _FILE_FLAGS) as descriptor:
        return hash_file(descriptor)[0]


@contextmanager
def open_parent(root: int, path: str) -> Iterator[tuple[int, str]]:
    """The parent directory of the path and the name in it; follows no link. Raises OSError."""
    directory, name = PurePosixPath(path).parent, PurePosixPath(path).name
    descriptor = open_beneath(root, str(directory))
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def inode_of(directory: int, name: str) -> int:
    """0 if there is no such entry."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return 0


@contextmanager
def _open_staging(root: int, journal: CommitJournal) -> Iterator[int | None]:
    try:
        descriptor = os.open(journal.staging, DIRECTORY_FLAGS, dir_fd=root)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
