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
from agentbox.agents.review.compare import hash_of, opened
from agentbox.core.files.atomic import read_json, replace, sync_folder
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.linux.opening import open_folder

Phase = Literal["staging", "swapping", "done"]
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class Step:
    """One path. Its staged entry has the step's number as its name. `inode`: of what is put there, 0 for a path that goes.
    `had`: something was there. `content`: SHA-256 of the file that is put, or where the link leads."""

    path: str
    inode: int
    had: bool
    content: str = ""


@dataclass
class Journal:
    """`workspace` is the folder that is changed, `staging` a folder in it. `made` and `emptied` are folders that come and go, outer ones first; the
    latter with their modes."""

    workspace: str
    staging: str
    phase: Phase = "staging"
    steps: list[Step] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    emptied: list[tuple[str, int]] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """On disk when it returns. Raises OSError."""
        replace(path, json.dumps(asdict(self)).encode("ascii"), mode=0o600)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """None where there is none. Raises ValueError for something else, and OSError."""
        said = read_json(path)
        if said is None:
            return None
        steps = [Step(**one) for one in said["steps"]]
        emptied = [(str(one[0]), int(one[1])) for one in said["emptied"]]
        return cls(
            workspace=said["workspace"],
            staging=said["staging"],
            phase=said["phase"],
            steps=steps,
            made=said["made"],
            emptied=emptied,
        )


@dataclass(frozen=True)
class Recovered:
    """`phase`: the one in which a commit was cut off. `kept`: see `undo`."""

    phase: Phase
    kept: dict[str, str]


def recover(path: Path) -> Recovered | None:
    """Finishes what was done but for the tidying, and undoes everything else. None where no commit was cut off. What
    somebody changed meanwhile stays, and the old file then stays in the staging folder.

    Raises OSError, and ValueError for a journal that cannot be read; it is kept then.
    """
    journal = Journal.read(path)
    if journal is None:
        return None
    root = open_folder(journal.workspace)
    try:
        kept = undo(root, journal)
        tidy(root, journal)
    finally:
        os.close(root)
    forget(path)
    return Recovered(journal.phase, kept)


def forget(path: Path) -> None:
    """The commit is over. Durable."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def undo(root: int, journal: Journal) -> dict[str, str]:
    """Everything as it was, when it was being changed. Raises OSError.

    A file that somebody wrote to after it was put stays: the answer has its path, and where the file before it is, from
    the workspace ("" where there was none).
    """
    kept: dict[str, str] = {}
    with _staging(root, journal) as staging:
        if staging is None or journal.phase != "swapping":
            return kept
        for number, step in reversed(list(enumerate(journal.steps))):
            if step.inode and not _take_out(root, staging, str(number), step):
                kept[step.path] = f"{journal.staging}/{number}" if step.had else ""
        for folder in reversed(journal.made):
            with suppress(OSError), parent(root, folder) as (above, name):
                os.rmdir(name, dir_fd=above)
        for folder, mode in journal.emptied:
            with suppress(FileExistsError), parent(root, folder) as (above, name):
                os.mkdir(name, mode, dir_fd=above)
        for number, step in enumerate(journal.steps):
            if not step.inode and inode(staging, str(number)):
                with suppress(FileExistsError), parent(root, step.path) as (above, name):
                    syscalls.move(staging, str(number), above, name)
    return kept


def tidy(root: int, journal: Journal) -> None:
    """Removes the staging folder: of a commit that is done with the old files in it, else with what was to be put."""
    with _staging(root, journal) as staging:
        if staging is None:
            return
        with os.scandir(staging) as entries:
            names = [one.name for one in entries]
        for name in names:
            if journal.phase != "swapping" or inode(staging, name) == journal.steps[int(name)].inode:
                os.unlink(name, dir_fd=staging)
    with suppress(OSError):  # not empty: something is kept in it
        os.rmdir(journal.staging, dir_fd=root)


def _take_out(root: int, staging: int, number: str, step: Step) -> bool:
    """False where what was put is not any more what was put: then it is left there. What came out is compared, so that no
    write between a comparison and the exchange is lost."""
    staged = inode(staging, number)
    if staged == step.inode:
        return True  # not put yet
    with suppress(FileNotFoundError), parent(root, step.path) as (above, name):
        if inode(above, name) != step.inode:
            return False  # somebody has put another one there
        change_places = syscalls.exchange if staged else syscalls.move
        change_places(above, name, staging, number)
        written = content(staging, number)
        if step.content in ("", written):
            return True
        if not staged:
            syscalls.move(staging, number, above, name)
            return False
        syscalls.exchange(staging, number, above, name)
        if content(staging, number) != written:
            return False
        os.unlink(number, dir_fd=staging)  # the file before it says the same
    return True


def content(folder: int, name: str) -> str:
    """SHA-256 of a file, or where a link leads. Raises OSError."""
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return os.readlink(name, dir_fd=folder)
    with opened(name, folder, _FILE) as descriptor:
        return hash_of(descriptor)[0]


@contextmanager
def parent(root: int, path: str) -> Iterator[tuple[int, str]]:
    """The folder that holds the path, and the name there; reached over no link. Raises OSError."""
    above, name = PurePosixPath(path).parent, PurePosixPath(path).name
    descriptor = open_beneath(root, str(above))
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def inode(folder: int, name: str) -> int:
    """0 where there is no such entry."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return 0


@contextmanager
def _staging(root: int, journal: Journal) -> Iterator[int | None]:
    try:
        descriptor = os.open(journal.staging, FOLDER, dir_fd=root)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
