"""Takes a review over into the workspace: all of it, or nothing.

New files are written into a folder of their own in the workspace first; then each changes places with the old one, at
once, and what came out is looked at. The old files are kept until the last one was found to be what the branch started
from. Every path is reached beneath the workspace's descriptor and over no link.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final

from agentbox.agents.review import syscalls
from agentbox.agents.review.change import Change, Review, Side
from agentbox.agents.review.compare import MODE, OF_OTHERS, hash_of, opened
from agentbox.agents.review.copying import STAGING
from agentbox.agents.review.journal import FOLDER, Journal, Step, forget, inode, parent, tidy, undo
from agentbox.core.linux.openat2 import open_beneath
from agentbox.core.linux.opening import open_folder

_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_STEP: Final = 1 << 20
_WRITTEN: Final = "it was written to while the review was taken, and is kept as it was written"


class Conflicts(Exception):
    """Paths of the workspace that are not what the branch started from, and why. Nothing was taken but `kept`: paths that
    were written to while the review was taken, and where the file before each is ("" where there was none)."""

    def __init__(self, found: dict[str, str], kept: dict[str, str] | None = None) -> None:
        super().__init__(f"{len(found)} conflicts")
        self.found, self.kept = found, kept or {}


class Taker:
    """One commit. `journal` is where its journal lies. `step` is called after each step that changes something: a hook of
    tests, which end the program there."""

    def __init__(
        self, workspace: Path, sealed: Path, journal: Path, review: Review, step: Callable[[], None] = lambda: None
    ) -> None:
        self._path, self._step = journal, step
        self._review = review
        self._root = open_folder(str(workspace))
        self._sealed = os.open(sealed, FOLDER)
        self._journal = Journal(workspace=str(workspace), staging=f"{STAGING}{review.agent_id}-{secrets.token_hex(4)}")
        self._changes: list[Change] = []  # those that are not there yet; the place of each is that of its step

    def close(self) -> None:
        """Frees the descriptors."""
        os.close(self._root)
        os.close(self._sealed)

    def conflicts(self) -> dict[str, str]:
        """Paths that cannot be taken as the workspace is now, and why. Prepares the steps. Raises OSError."""
        found: dict[str, str] = {}
        gone = {one.path for one in self._review.changes if one.new is None}
        ordered = sorted(self._review.changes, key=lambda one: (one.new is not None, one.path))
        for change in ordered:
            now, why = self._now(change.path, gone)
            if why or now not in (change.old, change.new):
                found[change.path] = why or "it has changed since the agent began"
            elif now != change.new:
                self._changes.append(change)
                self._journal.steps.append(Step(change.path, 0, now is not None))
        return found

    def take(self) -> int:
        """How many paths were changed. Raises Conflicts or OSError; the workspace is then as it was."""
        if found := self.conflicts():
            raise Conflicts(found)
        if not self._changes:
            return 0
        self._folders()
        self._journal.write(self._path)
        try:
            self._stage()
            self._journal.phase = "swapping"
            self._journal.write(self._path)
            self._step()
            self._swap()
        except BaseException as error:
            kept = undo(self._root, self._journal)
            tidy(self._root, self._journal)
            forget(self._path)
            if kept and isinstance(error, Conflicts | OSError):
                found = error.found if isinstance(error, Conflicts) else {}
                raise Conflicts({**found, **dict.fromkeys(kept, _WRITTEN)}, kept) from error
            raise
        syscalls.sync_volume(self._root)
        self._journal.phase = "done"
        self._journal.write(self._path)
        self._step()
        tidy(self._root, self._journal)
        self._step()
        forget(self._path)
        return len(self._changes)

    def _now(self, path: str, gone: set[str]) -> tuple[Side | None, str]:
        """What lies there, and why that cannot be said."""
        try:
            with parent(self._root, path) as (above, name):
                if os.fstat(above).st_dev != os.fstat(self._root).st_dev:
                    return None, "it lies on another file system than the workspace"
                told = os.stat(name, dir_fd=above, follow_symlinks=False)
                if stat.S_ISDIR(told.st_mode):  # for a file that goes it is as good as nothing
                    return None, "" if path in gone or path in self._review.emptied else "a folder is there now"
                return side(above, name), ""
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            below = any(str(one) in gone for one in PurePosixPath(path).parents)
            if below or (path in gone and error.errno == errno.ENOTDIR):
                return None, ""
            return None, "a folder of its path is a link or a file now"

    def _folders(self) -> None:
        """Which folders come and which go."""
        needed = {str(one) for change in self._changes if change.new for one in PurePosixPath(change.path).parents}
        for folder in sorted(needed - {"."}):
            if not self._is_folder(folder) or folder in {one.path for one in self._changes if one.new is None}:
                self._journal.made.append(folder)
        for folder in sorted(self._review.emptied):
            if self._is_folder(folder):
                descriptor = open_beneath(self._root, folder)
                self._journal.emptied.append((folder, stat.S_IMODE(os.fstat(descriptor).st_mode)))
                os.close(descriptor)

    def _is_folder(self, path: str) -> bool:
        try:
            os.close(open_beneath(self._root, path))
        except OSError:
            return False
        return True

    def _stage(self) -> None:
        os.mkdir(self._journal.staging, 0o700, dir_fd=self._root)
        self._step()
        staging = os.open(self._journal.staging, FOLDER, dir_fd=self._root)
        try:
            for number, change in enumerate(self._changes):
                if change.new is not None:
                    self._write(staging, str(number), change.path, change.new)
                    step = self._journal.steps[number]
                    step.inode, step.content = inode(staging, str(number)), change.new.said
                    self._step()
        finally:
            os.close(staging)
        syscalls.sync_volume(self._root)

    def _write(self, staging: int, name: str, path: str, new: Side) -> None:
        """The bytes that were shown, or none: what is in the sealed copy has the hash of the review."""
        if new.kind == "link":
            os.symlink(new.said, name, dir_fd=staging)
            return
        target = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=staging)
        try:
            with parent(self._sealed, path) as (above, own), opened(own, above, _FILE) as source:
                while data := os.read(source, _STEP):
                    view = memoryview(data)
                    while view:
                        view = view[os.write(target, view) :]
            os.lseek(target, 0, os.SEEK_SET)
            if hash_of(target)[0] != new.said:
                raise OSError(errno.EIO, "the sealed copy is not what was shown", path)
            os.fchmod(target, new.mode)
        finally:
            os.close(target)

    def _swap(self) -> None:
        staging = os.open(self._journal.staging, FOLDER, dir_fd=self._root)
        try:
            going = [number for number, change in enumerate(self._changes) if change.new is None]
            for number in going:
                self._change_places(staging, number)
            for folder, _ in reversed(self._journal.emptied):
                self._remove(folder)
            for folder in self._journal.made:
                self._make(folder)
            for number in range(len(going), len(self._changes)):  # those that go are first
                self._change_places(staging, number)
        finally:
            os.close(staging)

    def _change_places(self, staging: int, number: int) -> None:
        change, step, own = self._changes[number], self._journal.steps[number], str(number)
        try:
            with parent(self._root, step.path) as (above, name):
                if change.new is None:
                    syscalls.move(above, name, staging, own)
                elif step.had:
                    syscalls.exchange(above, name, staging, own)
                else:
                    syscalls.move(staging, own, above, name)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EEXIST, errno.ELOOP, errno.ENOTDIR):
                raise Conflicts({step.path: "it changed while the review was taken"}) from error
            raise
        self._step()
        if step.had and side(staging, own) != change.old:
            raise Conflicts({step.path: "it changed while the review was taken"})

    def _remove(self, folder: str) -> None:
        try:
            with parent(self._root, folder) as (above, name):
                os.rmdir(name, dir_fd=above)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT, errno.EBUSY):
                raise
        self._step()

    def _make(self, folder: str) -> None:
        descriptor = open_beneath(self._sealed, folder)
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o777 & ~OF_OTHERS
        os.close(descriptor)
        try:
            with parent(self._root, folder) as (above, name):
                os.mkdir(name, mode | stat.S_IRWXU, dir_fd=above)
        except FileExistsError as error:
            raise Conflicts({folder: "it appeared while the review was taken"}) from error
        self._step()


def side(folder: int, name: str) -> Side | None:
    """What lies there; None for what is neither a file nor a link. Raises OSError."""
    told = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(told.st_mode):
        leads = os.readlink(name, dir_fd=folder)
        return Side(kind="link", mode=0, size=len(os.fsencode(leads)), said=leads)
    if not stat.S_ISREG(told.st_mode):
        return None
    with opened(name, folder, _FILE) as descriptor:
        said, size = hash_of(descriptor)
    return Side(kind="file", mode=told.st_mode & MODE, size=size, said=said)
