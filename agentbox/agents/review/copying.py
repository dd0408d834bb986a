"""A copy of a folder: files as they are, links as links, nothing else. Run as a program it copies one share of many.

Standard library only, and little of it: a share is copied by an interpreter that starts without site packages, so that a
large copy uses every processor and holds up nobody. Calls and numbers: man 2 ioctl_ficlone, man 2 copy_file_range.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import marshal
import os
import stat
import sys
import zlib
from json.encoder import encode_basestring_ascii as quoted

TYPE_CHECKING = False  # as typing has it, which takes a third of the start
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

FICLONE: Final = 0x40049409  # _IOW(0x94, 9, int), linux/fs.h
SMALL: Final = 256 << 10  # bytes; up to here a file is read whole, and its hash taken on the way
BLOCK: Final = 4096  # bytes
_STEP: Final = 1 << 20
_TOLD: Final = 5_000  # entries between two words about how far it is
GIT: Final = ".git"
STAGING: Final = ".agentbox-review-"  # a folder that a commit uses in the workspace for a moment
_CANNOT_CLONE: Final = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.EPERM, errno.ENOSYS)

if TYPE_CHECKING:
    Copied = tuple[list[str], list[tuple[str, int, int]], int, list[str]]  # members of Copier of these names


class Copier:
    """Copies the share `part` of `parts` of the tree at the descriptor `source` to that at `target`.

    Every share makes every folder; a file belongs to the share that its path says. `lines` are what is told of each entry, a
    `listing.Row` as JSON; `folders` path, mode and mtime in nanoseconds of each folder, outer ones first, of the first share only;
    `blocks` what the bytes of files take; `skipped` paths of folders and files named .git, which are not copied here.
    """

    def __init__(
        self, source: int, target: int, part: int = 0, parts: int = 1, told: Callable[[int], None] = lambda _: None
    ) -> None:
        self.lines: list[str] = []
        self.folders: list[tuple[str, int, int]] = []
        self.blocks = 0
        self.skipped: list[str] = []
        self._source, self._target, self._part, self._parts, self._told = source, target, part, parts, told
        self._clones = True
        self._done = 0

    def copy(self) -> None:
        """Raises OSError when the target takes no more."""
        self._folder("", self._source, self._target)

    def copied(self) -> Copied:
        """What is known once it is done."""
        return self.lines, self.folders, self.blocks, self.skipped

    def _folder(self, above: str, source: int, target: int) -> None:
        with os.scandir(source) as entries:
            # Every other share goes backwards: two that make files in one folder wait for each other.
            found = sorted(entries, key=lambda one: one.name, reverse=bool(self._part % 2))
        for entry in found:
            path = f"{above}{entry.name}"
            if entry.name == GIT:
                self.skipped.append(path)
            elif not above and entry.name.startswith(STAGING):
                continue
            elif entry.is_dir(follow_symlinks=False):
                self._enter(path, entry.name, source, target)
            elif self._parts == 1 or zlib.crc32(os.fsencode(path)) % self._parts == self._part:
                self._one(path, entry, source, target)

    def _enter(self, path: str, name: str, source: int, target: int) -> None:
        try:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source)
        except (PermissionError, FileNotFoundError, NotADirectoryError):
            self._leave_out(path)
            return
        try:
            _make_folder(name, target)
            copy = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=target)
            try:
                told = os.fstat(inner)
                if self._part == 0:
                    mode = stat.S_IMODE(told.st_mode)
                    self.folders.append((path, mode, told.st_mtime_ns))
                    self.lines.append(f'[{quoted(path)},"d",{mode},0,{told.st_mtime_ns}]')
                self._folder(f"{path}/", inner, copy)
            finally:
                os.close(copy)
        finally:
            os.close(inner)

    def _one(self, path: str, entry: os.DirEntry[str], source: int, target: int) -> None:
        self._done += 1
        if self._done % _TOLD == 0:
            self._told(self._done)
        try:
            if entry.is_symlink():
                self._link(path, entry.name, source, target)
            elif entry.is_file(follow_symlinks=False):
                self._file(path, entry.name, source, target)
            else:
                self._leave_out(path)
        except FileNotFoundError:  # it went while we looked
            return

    def _link(self, path: str, name: str, source: int, target: int) -> None:
        leads = os.readlink(name, dir_fd=source)
        told = os.stat(name, dir_fd=source, follow_symlinks=False)
        os.symlink(leads, name, dir_fd=target)
        own = os.stat(name, dir_fd=target, follow_symlinks=False)
        self._keep(path, "l", told, own, leads)

    def _file(self, path: str, name: str, source: int, target: int) -> None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            old = os.open(name, flags, dir_fd=source)
        except PermissionError:
            self._leave_out(path)
            return
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO):  # it became a link, or a pipe without a reader
                raise
            self._leave_out(path)
            return
        try:
            told = os.fstat(old)
            if not stat.S_ISREG(told.st_mode):
                self._leave_out(path)
                return
            mode = told.st_mode & 0o1777  # never a setuid bit
            new = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=target)
            try:
                said = self._bytes(old, new, told.st_size)
                os.utime(new, ns=(told.st_atime_ns, told.st_mtime_ns))
                own = os.fstat(new)
                if stat.S_IMODE(own.st_mode) != mode:
                    os.fchmod(new, mode)
                    own = os.fstat(new)
            finally:
                os.close(new)
        finally:
            os.close(old)
        self._keep(path, "f", told, own, said)

    def _bytes(self, old: int, new: int, size: int) -> str:
        """The hash of what was copied, "" for a large file."""
        if size <= SMALL:
            data = os.read(old, size + 1)
            if len(data) != size:  # somebody writes it, or it is of a kind that tells no size
                os.lseek(old, 0, os.SEEK_SET)
                data = os.read(old, SMALL + 1)
            if len(data) <= SMALL:
                _write(new, data)
                return hashlib.sha256(data).hexdigest()
            os.lseek(old, 0, os.SEEK_SET)  # it grew
        if not self._cloned(old, new):
            _copy(old, new)
        return ""

    def _cloned(self, old: int, new: int) -> bool:
        if self._clones:
            try:
                fcntl.ioctl(new, FICLONE, old)
            except OSError as error:
                if error.errno not in _CANNOT_CLONE:
                    raise
                self._clones = False
        return self._clones

    def _leave_out(self, path: str) -> None:
        self.lines.append(f'[{quoted(path)},"s"]')

    def _keep(self, path: str, kind: str, told: os.stat_result, own: os.stat_result, said: str) -> None:
        self.blocks += -(-told.st_size // BLOCK)
        self.lines.append(
            f'[{quoted(path)},"{kind}",{stat.S_IMODE(told.st_mode)},{told.st_size},{told.st_mtime_ns},{told.st_ino},'
            f"{told.st_ctime_ns},{own.st_ino},{own.st_ctime_ns},{quoted(said)}]"
        )


def _make_folder(name: str, target: int) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=target)
    except FileExistsError:  # another share was first
        return


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _copy(old: int, new: int) -> None:
    try:
        while os.copy_file_range(old, new, _STEP * 64):
            pass
    except OSError as error:
        if error.errno not in _CANNOT_CLONE:
            raise
        os.lseek(old, 0, os.SEEK_SET)
        os.lseek(new, 0, os.SEEK_SET)
        while data := os.read(old, _STEP):
            _write(new, data)


def main(argv: list[str]) -> int:
    """Descriptors of two folders, the share and how many there are. On stdout: progress as lines, an empty line, `Copied` in the
    interpreter's own serial form, or the number of the error that stopped it."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    source, target = (os.open(".", flags, dir_fd=int(folder)) for folder in argv[:2])  # each share reads on its own
    os.umask(0)
    out = sys.stdout.buffer

    def told(done: int) -> None:
        out.write(b"%d\n" % done)
        out.flush()

    copier = Copier(source, target, int(argv[2]), int(argv[3]), told)
    answer: Any
    try:
        copier.copy()
        answer = copier.copied()
    except OSError as error:
        answer = error.errno or errno.EIO
    out.write(b"\n" + marshal.dumps(answer))
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
