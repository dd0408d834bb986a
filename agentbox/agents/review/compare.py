"""From a sealed branch and the list of its start to what changed. Reads the branch only, and never over a link.

No process of the agent lives any more. What a branch holds is still hostile: names, links, modes, kinds, sizes.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from agentbox.agents.review.aliases import mark
from agentbox.agents.review.autorun import IN_REPOSITORY, folded, is_bare_repository, runs
from agentbox.agents.review.change import Change, LeftOut, Side
from agentbox.agents.review.listing import Row
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.linux.opening import folder
from agentbox.sandbox.monitor.usage import MOST_DEPTH

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_STEP: Final = 1 << 20
MODE: Final = 0o1777  # the bits that are taken: never setuid, never setgid
OF_OTHERS: Final = 0o022  # group and all others may write: an agent opens nothing of the operator's to them
# What costs an agent next to nothing, and whoever reads its branch time and memory without end, is bounded:
MOST_PATHS: Final = 100_000  # that it changed or made
MOST_TEXT: Final = 16 << 20  # characters of these paths, and of where links lead
_SHOWN: Final = 200  # characters of a path that is left out for its length
MOST_HOLES: Final = 256 << 20  # bytes that no block of the disk holds
_BLOCK: Final = 512  # of st_blocks (stat(2))
_LONGEST_PATH: Final = 4095  # bytes, without the final zero (PATH_MAX of linux/limits.h)


class TooMuch(ValueError):
    """More paths than a review can hold."""


@dataclass
class Found:
    """`emptied`: folders of the start that are gone."""

    changes: list[Change] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)


def compare(sealed: Path, workspace: Path, start: dict[str, Row]) -> Found:
    """What differs between the start and the branch. `workspace` is looked at for the start's large files, whose bytes are
    those of the start while its stat data are. Raises OSError and TooMuch."""
    looking = _Comparing(workspace, start)
    with _folder_of_agent(str(sealed), None) as root:
        looking.folder("", root, 0)
    return looking.finish()


class _Comparing:
    def __init__(self, workspace: Path, start: dict[str, Row]) -> None:
        self._workspace, self._start = workspace, start
        self._seen: set[str] = set()
        self._found = Found()
        self._paths = self._text = self._holes = 0

    def folder(self, above: str, descriptor: int, depth: int, repository: bool = False) -> None:
        """`repository`: the folder is in a bare one, which git finds by its files and whose `config` it obeys."""
        with os.scandir(descriptor) as entries:
            found = sorted(entries, key=lambda one: one.name)
        repository = repository or is_bare_repository(one.name for one in found)
        for entry in found:
            path = f"{above}{entry.name}"
            folder, row = entry.is_dir(follow_symlinks=False), self._start.get(path)
            if row is None or folder == (row.kind == "d"):
                self._seen.add(path)
            if _is_git(entry.name):
                if row is None:
                    self._leave_out(path, "git's own files are not taken")
            elif folder and row is None and depth >= MOST_DEPTH:
                self._leave_out(path, f"deeper than {MOST_DEPTH} folders")
            elif row is None and self._too_long(path):
                self._leave_out(path[:_SHOWN] + "…", f"its path is longer than {_LONGEST_PATH} bytes")
            elif folder:
                with _folder_of_agent(entry.name, descriptor) as inner:
                    self.folder(f"{path}/", inner, depth + 1, repository)
            else:
                self._one(path, entry.name, descriptor, IN_REPOSITORY if repository else runs(path))

    def finish(self) -> Found:
        for path, row in self._start.items():
            if path in self._seen:
                continue
            if row.kind == "d":
                self._found.emptied.append(path)
            elif row.kind in "fl":
                self._found.changes.append(
                    Change(path=path, what="deleted", old=self._old(row), new=None, runs=runs(path))
                )
        self._found.changes = mark(self._found.changes, self._links())
        self._found.changes.sort(key=lambda one: (not one.runs, one.path))
        self._found.emptied.sort(reverse=True)
        return self._found

    def _links(self) -> dict[str, str]:
        """Every link of the branch, and where it leads."""
        changed = {one.path: one.new for one in self._found.changes}
        old = {path: row.said for path, row in self._start.items() if row.kind == "l" and path not in changed}
        return old | {path: new.said for path, new in changed.items() if new is not None and new.kind == "link"}

    def _too_long(self, path: str) -> bool:
        """Whether no program could open it in the workspace by its path."""
        return len(os.fsencode(self._workspace)) + 1 + len(os.fsencode(path)) > _LONGEST_PATH

    def _one(self, path: str, name: str, descriptor: int, runs_it: str) -> None:
        row = self._start.get(path)
        told = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        if row is not None and row.kind in "fl" and (told.st_ino, told.st_ctime_ns) == (row.own_inode, row.own_changed):
            return
        notes: list[str] = []
        if stat.S_ISLNK(told.st_mode):
            leads = os.readlink(name, dir_fd=descriptor)
            if not stays_inside(path, leads):
                if row is None or row.kind != "l" or row.said != leads:
                    self._leave_out(path, "a link that leads out of the workspace")
                return
            new = Side(kind="link", mode=0, size=len(os.fsencode(leads)), said=leads)
        elif stat.S_ISREG(told.st_mode):
            if self._too_empty(name, descriptor, told):
                self._leave_out(path, f"its holes, and those of others, are more than {MOST_HOLES >> 20} MiB")
                return
            new = self._file(name, descriptor, told, row.mode if row is not None and row.kind == "f" else 0)
            if told.st_mode & MODE != new.mode:
                notes.append("that others may write it is not taken")
            if told.st_mode & (stat.S_ISUID | stat.S_ISGID):
                notes.append("its setuid or setgid bit is not taken")
        else:
            if row is None or row.kind != "s":
                self._leave_out(path, "neither a file nor a link")
            return
        self._compared(path, row, new, notes, runs_it)

    def _too_empty(self, name: str, descriptor: int, told: os.stat_result) -> bool:
        """Whether reading its holes would be too much. Those of a disk that compresses, or counts blocks later, are none."""
        holes = told.st_size - told.st_blocks * _BLOCK
        if holes <= 0:
            return False
        with opened(name, descriptor, _FILE) as file:
            if os.lseek(file, 0, os.SEEK_HOLE) >= told.st_size:
                return False
        self._holes += holes
        return self._holes > MOST_HOLES

    def _compared(self, path: str, row: Row | None, new: Side, notes: list[str], runs_it: str) -> None:
        self._book(path, new.said)
        if row is None or row.kind not in "fl":
            if new.kind == "file" and new.mode & 0o111:
                notes.append("a program")
            self._found.changes.append(
                Change(path=path, what="added", old=None, new=new, runs=runs_it, notes=tuple(notes))
            )
            return
        old = self._old(row)
        if old == new:
            return
        if old.kind == new.kind == "file" and old.mode != new.mode:
            notes.append(f"mode {old.mode:04o} becomes {new.mode:04o}")
        if not old.said:
            notes.append("the workspace's file is another one since; what it was is not known")
        self._found.changes.append(
            Change(path=path, what="modified", old=old, new=new, runs=runs_it, notes=tuple(notes))
        )

    def _old(self, row: Row) -> Side:
        if row.kind == "l":
            return Side(kind="link", mode=0, size=len(os.fsencode(row.said)), said=row.said)
        said = row.said or _hash_if_same(self._workspace, row)
        return Side(kind="file", mode=row.mode & MODE, size=row.size, said=said)

    def _file(self, name: str, descriptor: int, told: os.stat_result, before: int) -> Side:
        """Others may write it where they might `before`, and nowhere else."""
        with opened(name, descriptor, _FILE) as descriptor_of_it:
            said, size = hash_of(descriptor_of_it)
        mode = told.st_mode & MODE & ~(OF_OTHERS & ~before)
        return Side(kind="file", mode=mode, size=size, said=said)

    def _book(self, path: str, said: str = "") -> None:
        self._paths += 1
        self._text += len(path) + len(said)
        if self._paths > MOST_PATHS or self._text > MOST_TEXT:
            raise TooMuch(f"it has more than {MOST_PATHS} changed paths, or {MOST_TEXT >> 20} MiB of their names")

    def _leave_out(self, path: str, why: str) -> None:
        self._book(path)
        self._found.left_out.append(LeftOut(path=path, why=why))


def hash_of(descriptor: int) -> tuple[str, int]:
    """SHA-256 and size of what can be read there."""
    found, size = hashlib.sha256(), 0
    while data := os.read(descriptor, _STEP):
        found.update(data)
        size += len(data)
    return found.hexdigest(), size


def stays_inside(path: str, leads: str) -> bool:
    """Whether a link at `path` leads to a place of the workspace: relative, and no `..` but at its beginning, so that no
    other link on the way changes what it means."""
    parts = PurePosixPath(leads).parts
    up = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return (
        not leads.startswith("/")
        and up <= len(PurePosixPath(path).parts) - 1
        and ".." not in parts[up:]
        and not any(map(_is_git, parts))
    )


def _is_git(name: str) -> bool:
    """Names that git, or a disk that folds names, takes for its folder."""
    return folded(name) in (".git", "git~1")


def _hash_if_same(workspace: Path, row: Row) -> str:
    """The hash of the workspace's file, as long as nobody has touched it since the start; else ""."""
    try:
        with folder(str(workspace)) as root:
            descriptor = open_beneath(root, row.path, _FILE)
    except OSError:
        return ""
    try:
        said, _ = hash_of(descriptor)
        told = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    same = (told.st_ino, told.st_size, told.st_mtime_ns, told.st_ctime_ns) == (
        row.inode,
        row.size,
        row.mtime,
        row.changed,
    )
    return said if same else ""


@contextmanager
def _folder_of_agent(name: str, above: int | None) -> Iterator[int]:
    """A folder of the branch, which its owner may list and enter from now on: an agent may have taken that away, and
    what is taken from a branch never has fewer rights of its owner."""
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        mode = stat.S_IMODE(os.fstat(place).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            Path(f"/proc/self/fd/{place}").chmod(mode | stat.S_IRWXU)
        descriptor = os.open(name, _FOLDER, dir_fd=above)
    finally:
        os.close(place)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened(name: str, folder: int, flags: int) -> Iterator[int]:
    """Opened for reading, also what the agent has closed to itself. Raises OSError."""
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except PermissionError:
        place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            there, mode = Path(f"/proc/self/fd/{place}"), stat.S_IMODE(os.fstat(place).st_mode)
            there.chmod(mode | stat.S_IRUSR | stat.S_IXUSR)
            descriptor = os.open(name, flags, dir_fd=folder)
            there.chmod(mode)
        finally:
            os.close(place)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
