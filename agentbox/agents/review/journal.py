"""How far a commit is, written ahead of each phase; and the way back, or to the end, for one that a crash cut off."""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, Literal, Self

from agentbox.agents.review import syscalls
from agentbox.agents.review.compare import hash_file, open_entry
from agentbox.core.files.atomic import read_json, replace, sync_directory
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.linux.path_opener import open_directory

Phase = Literal["staging", "swapping", "done"]
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class CommitStep:
    """One path. Its staged entry has the step's number as its name. `inode`: of what is put there, 0 for a path that goes.
    `had`: something was there. `content`: SHA-256 of the file that is put, or where the link leads."""

    path: str
    inode: int
    had: bool
    content: str = ""


@dataclass
class CommitJournal:
    """`workspace` is the folder that is changed, `staging` a folder in it. `made` and `emptied` are folders that come and go, outer ones first; the
    latter with their modes."""

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
        """None where there is none. Raises ValueError for something else, and OSError."""
        data = read_json(path)
        if data is None:
            return None
        steps = [CommitStep(**item) for item in data["steps"]]
        emptied = [(str(one[0]), int(one[1])) for one in data["emptied"]]
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
    """`phase`: the one in which a commit was cut off. `kept`: see `undo`."""

    phase: Phase
    preserved: dict[str, str]


def recover(path: Path) -> RecoveredCommit | None:
    """Finishes what was done but for the tidying, and undoes everything else. None where no commit was cut off. What
    somebody changed meanwhile stays, and the old file then stays in the staging folder.

    Raises OSError, and ValueError for a journal that cannot be read; it is kept then.
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
    """The commit is over. Durable."""
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def roll_back(root: int, journal: CommitJournal) -> dict[str, str]:
    """Everything as it was, when it was being changed. Raises OSError.

    A file that somebody wrote to after it was put stays: the answer has its path, and where the file before it is, from
    the workspace ("" where there was none).
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
                    syscalls.move(staging, str(number), parent_fd, name)
    return preserved


def clean_up(root: int, journal: CommitJournal) -> None:
    """Removes the staging folder: of a commit that is done with the old files in it, else with what was to be put."""
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
    with suppress(OSError):  # not empty: something is kept in it
        os.rmdir(journal.staging, dir_fd=root)


def _restore_previous(root: int, staging: int, number: str, step: CommitStep) -> bool:
    """False where what was put is not any more what was put: then it is left there. What came out is compared, so that no
    write between a comparison and the exchange is lost."""
    staged = inode_of(staging, number)
    if staged == step.inode:
        return True  # not put yet
    with suppress(FileNotFoundError), open_parent(root, step.path) as (parent_fd, name):
        if inode_of(parent_fd, name) != step.inode:
            return False  # somebody has put another one there
        swap = syscalls.exchange if staged else syscalls.move
        swap(parent_fd, name, staging, number)
        replaced = content_of(staging, number)
        if step.content in ("", replaced):
            return True
        if not staged:
            syscalls.move(staging, number, parent_fd, name)
            return False
        syscalls.exchange(staging, number, parent_fd, name)
        if content_of(staging, number) != replaced:
            return False
        os.unlink(number, dir_fd=staging)  # the file before it says the same
    return True


def content_of(directory: int, name: str) -> str:
    """SHA-256 of a file, or where a link leads. Raises OSError."""
    if stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        return os.readlink(name, dir_fd=directory)
    with open_entry(name, directory, _FILE_FLAGS) as descriptor:
        return hash_file(descriptor)[0]


@contextmanager
def open_parent(root: int, path: str) -> Iterator[tuple[int, str]]:
    """The folder that holds the path, and the name there; reached over no link. Raises OSError."""
    directory, name = PurePosixPath(path).parent, PurePosixPath(path).name
    descriptor = open_beneath(root, str(directory))
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def inode_of(directory: int, name: str) -> int:
    """0 where there is no such entry."""
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
