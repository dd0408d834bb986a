"""Copies a directory tree: files and links only. As a program it copies one share of a tree.

Uses few modules of the standard library: a share is copied by an interpreter without site packages,
so that a large copy uses every processor. References: man 2 ioctl_ficlone, man 2 copy_file_range.
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

TYPE_CHECKING = False  # as in typing, whose import takes a third of the startup
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

FICLONE: Final = 0x40049409  # _IOW(0x94, 9, int), linux/fs.h
SMALL: Final = 256 << 10  # bytes; smaller files are read at once and hashed during the copy
BLOCK: Final = 4096  # bytes
_CHUNK: Final = 1 << 20
_PROGRESS_INTERVAL: Final = 5_000  # entries between two progress reports
GIT: Final = ".git"
STAGING: Final = ".agentbox-review-"  # prefix of the staging directory of a commit in the workspace
_CANNOT_CLONE: Final = (
    errno.EOPNOTSUPP,
    errno.EXDEV,
    errno.EINVAL,
    errno.ENOTTY,
    errno.EPERM,
    errno.ENOSYS,
)

if TYPE_CHECKING:
    CopyResult = tuple[
        list[str], list[tuple[str, int, int]], int, list[str]
    ]  # attributes of TreeCopier with these names


class TreeCopier:
    """Copies share number `share` of `shares` of the tree at descriptor `source` to `target`.

    Every share creates every directory; a file belongs to the share given by its path. `lines` has
    a `BaselineEntry` as JSON per entry; `directories` path, mode and mtime in nanoseconds of each
    directory, outer ones first, in the first share only; `blocks` the size of the files; `skipped`
    paths named .git, which are not copied here.
    """

    def __init__(
        self,
        source: int,
        target: int,
        share: int = 0,
        shares: int = 1,
        report_progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.lines: list[str] = []
        self.directories: list[tuple[str, int, int]] = []
        self.blocks = 0
        self.skipped: list[str] = []
        self._source, self._target, self._share, self._shares, self._report_progress = (
            source,
            target,
            share,
            shares,
            report_progress,
        )
        self._can_clone = True
        self._done = 0

    def copy(self) -> None:
        """Raises OSError if the target is full."""
        self._copy_directory("", self._source, self._target)

    def result(self) -> CopyResult:
        """The result after `copy`."""
        return self.lines, self.directories, self.blocks, self.skipped

    def _copy_directory(self, prefix: str, source: int, target: int) -> None:
        with os.scandir(source) as entries:
            # Odd shares go backwards: creating files in one directory is serialised by the kernel.
            ordered = sorted(entries, key=lambda item: item.name, reverse=bool(self._share % 2))
        for entry in ordered:
            path = f"{prefix}{entry.name}"
            if entry.name == GIT:
                self.skipped.append(path)
            elif not prefix and entry.name.startswith(STAGING):
                continue
            elif entry.is_dir(follow_symlinks=False):
                self._copy_subdirectory(path, entry.name, source, target)
            elif self._shares == 1 or zlib.crc32(os.fsencode(path)) % self._shares == self._share:
                self._copy_entry(path, entry, source, target)

    def _copy_subdirectory(self, path: str, name: str, source: int, target: int) -> None:
        try:
            inner = os.open(
                name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source
            )
        except (PermissionError, FileNotFoundError, NotADirectoryError):
            self._skip(path)
            return
        try:
            _make_directory(name, target)
            copy = os.open(
                name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=target
            )
            try:
                stats = os.fstat(inner)
                if self._share == 0:
                    mode = stat.S_IMODE(stats.st_mode)
                    self.directories.append((path, mode, stats.st_mtime_ns))
                    self.lines.append(f'[{quoted(path)},"d",{mode},0,{stats.st_mtime_ns}]')
                self._copy_directory(f"{path}/", inner, copy)
            finally:
                os.close(copy)
        finally:
            os.close(inner)

    def _copy_entry(self, path: str, entry: os.DirEntry[str], source: int, target: int) -> None:
        self._done += 1
        if self._done % _PROGRESS_INTERVAL == 0:
            self._report_progress(self._done)
        try:
            if entry.is_symlink():
                self._copy_link(path, entry.name, source, target)
            elif entry.is_file(follow_symlinks=False):
                self._copy_file(path, entry.name, source, target)
            else:
                self._skip(path)
        except FileNotFoundError:  # removed meanwhile
            return

    def _copy_link(self, path: str, name: str, source: int, target: int) -> None:
        link_target = os.readlink(name, dir_fd=source)
        stats = os.stat(name, dir_fd=source, follow_symlinks=False)
        os.symlink(link_target, name, dir_fd=target)
        copy_stats = os.stat(name, dir_fd=target, follow_symlinks=False)
        self._record(path, "l", stats, copy_stats, link_target)

    def _copy_file(self, path: str, name: str, source: int, target: int) -> None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            old = os.open(name, flags, dir_fd=source)
        except PermissionError:
            self._skip(path)
            return
        except OSError as error:
            if error.errno not in (
                errno.ELOOP,
                errno.ENXIO,
            ):  # became a link, or a pipe without a reader
                raise
            self._skip(path)
            return
        try:
            stats = os.fstat(old)
            if not stat.S_ISREG(stats.st_mode):
                self._skip(path)
                return
            mode = stats.st_mode & 0o1777  # never a setuid bit
            new = os.open(
                name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=target
            )
            try:
                content = self._copy_bytes(old, new, stats.st_size)
                os.utime(new, ns=(stats.st_atime_ns, stats.st_mtime_ns))
                copy_stats = os.fstat(new)
                if stat.S_IMODE(copy_stats.st_mode) != mode:
                    os.fchmod(new, mode)
                    copy_stats = os.fstat(new)
            finally:
                os.close(new)
        finally:
            os.close(old)
        self._record(path, "f", stats, copy_stats, content)

    def _copy_bytes(self, old: int, new: int, size: int) -> str:
        """The hash of the copied content, "" for a large file."""
        if size <= SMALL:
            data = os.read(old, size + 1)
            if len(data) != size:  # being written, or of a type without a size
                os.lseek(old, 0, os.SEEK_SET)
                data = os.read(old, SMALL + 1)
            if len(data) <= SMALL:
                _write_all(new, data)
                return hashlib.sha256(data).hexdigest()
            os.lseek(old, 0, os.SEEK_SET)  # it grew
        if not self._clone(old, new):
            _copy_range(old, new)
        return ""

    def _clone(self, old: int, new: int) -> bool:
        if self._can_clone:
            try:
                fcntl.ioctl(new, FICLONE, old)
            except OSError as error:
                if error.errno not in _CANNOT_CLONE:
                    raise
                self._can_clone = False
        return self._can_clone

    def _skip(self, path: str) -> None:
        self.lines.append(f'[{quoted(path)},"s"]')

    def _record(
        self, path: str, kind: str, stats: os.stat_result, copy_stats: os.stat_result, content: str
    ) -> None:
        self.blocks += -(-stats.st_size // BLOCK)
        self.lines.append(
            f'[{quoted(path)},"{kind}",{stat.S_IMODE(stats.st_mode)},{stats.st_size},'
            f"{stats.st_mtime_ns},{stats.st_ino},{stats.st_ctime_ns},"
            f"{copy_stats.st_ino},{copy_stats.st_ctime_ns},{quoted(content)}]"
        )


def _make_directory(name: str, target: int) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=target)
    except FileExistsError:  # created by another share
        return


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _copy_range(old: int, new: int) -> None:
    try:
        while os.copy_file_range(old, new, _CHUNK * 64):
            pass
    except OSError as error:
        if error.errno not in _CANNOT_CLONE:
            raise
        os.lseek(old, 0, os.SEEK_SET)
        os.lseek(new, 0, os.SEEK_SET)
        while data := os.read(old, _CHUNK):
            _write_all(new, data)


def main(argv: list[str]) -> int:
    """Arguments: descriptors of two directories, share, number of shares. Stdout: progress as
    lines, an empty line, then marshal data: `CopyResult`, or the errno of a failure."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    source, target = (
        os.open(".", flags, dir_fd=int(descriptor)) for descriptor in argv[:2]
    )  # a file description per share
    os.umask(0)
    out = sys.stdout.buffer

    def report_progress(done: int) -> None:
        out.write(b"%d\n" % done)
        out.flush()

    copier = TreeCopier(source, target, int(argv[2]), int(argv[3]), report_progress)
    result: Any
    try:
        copier.copy()
        result = copier.result()
    except OSError as error:
        result = error.errno or errno.EIO
    out.write(b"\n" + marshal.dumps(result))
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
