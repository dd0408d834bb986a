"""Copies of files and trees that others may change. No link is followed; a file that goes away is
no error.
"""

import os
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from agentbox.core.files.walking import GONE, UNREADABLE, Entry, Skip, walk

_CHUNK = 1 << 24  # bytes a call
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def copy_open_file(source: int, target: Path, length: int | None = None) -> int:
    """Copies `length` bytes, by default all, with mode and time of change; returns how many. Raises
    OSError, FileExistsError where `target` exists.
    """
    status = os.fstat(source)
    remaining = status.st_size if length is None else min(length, status.st_size)
    copied = 0
    descriptor = os.open(target, _WRITE, 0o600)
    try:
        while remaining > 0:
            count = os.sendfile(descriptor, source, copied, min(_CHUNK, remaining))
            if not count:
                break  # it was cut meanwhile
            copied, remaining = copied + count, remaining - count
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & 0o700)
        os.utime(descriptor, ns=(status.st_mtime_ns, status.st_mtime_ns))
    finally:
        os.close(descriptor)
    return copied


def copy_file(source: Path, target: Path, length: int | None = None) -> int | None:
    """As `copy_open_file`; None for what is no regular file, or none any more."""
    try:
        descriptor = os.open(source, _READ)
    except OSError as error:
        if error.errno in GONE:
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return copy_open_file(descriptor, target, length)
    finally:
        os.close(descriptor)


def copy_tree(
    source: Path,
    target: Path,
    *,
    skip: Skip = lambda _path: False,
    stop: Callable[[], None] = lambda: None,
    lengths: dict[str, int] | None = None,
) -> list[str]:
    """Copies directories, regular files and symbolic links (as links) below `source`; devices,
    pipes and sockets are left out. `skip` is asked with each path below `source`; `stop` is called
    for each file. `lengths`: of files that only grow, by path; others are copied as they are.
    Returns the paths of files that changed in each of three tries, and of what is not in the copy:
    files and folders that cannot be read, or are deeper than a tree is walked. Raises OSError.
    """
    changed: list[str] = []
    with closing(walk(source, skip=skip, unread=changed.append)) as entries:
        for entry in entries:
            stop()
            copy, mode = target / entry.path, entry.status.st_mode
            if entry.ended:
                copy.chmod(stat.S_IMODE(mode) & 0o700)
                os.utime(copy, ns=(entry.status.st_mtime_ns, entry.status.st_mtime_ns))
            elif stat.S_ISDIR(mode):
                copy.mkdir(mode=0o700, parents=True, exist_ok=True)
            elif not _copy_entry(entry, copy, None if lengths is None else lengths.get(entry.path)):
                changed.append(entry.path)
    return changed


def file_sizes(source: Path, skip: Skip = lambda _path: False) -> dict[str, int]:
    """The size of each regular file that is copied from a tree, by path below it."""
    with closing(walk(source, skip=skip)) as entries:
        return {
            entry.path: entry.status.st_size
            for entry in entries
            if stat.S_ISREG(entry.status.st_mode)
        }


def _copy_entry(entry: Entry, target: Path, length: int | None) -> bool:
    """Whether the copy of a file or link is what that was at some moment. What went away, and what
    is neither, has no copy.
    """
    try:
        if stat.S_ISLNK(entry.status.st_mode):
            target.symlink_to(os.readlink(entry.name, dir_fd=entry.directory))
        elif stat.S_ISREG(entry.status.st_mode):
            return _copy_steady(entry.directory, entry.name, target, length)
    except OSError as error:
        if error.errno in UNREADABLE:
            return False
        if error.errno not in GONE:
            raise
    return True


def _copy_steady(directory: int, name: str, target: Path, length: int | None) -> bool:
    """Returns whether the copy is what the file was at some moment."""
    for _ in range(3):
        descriptor = os.open(name, _READ, dir_fd=directory)
        try:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                return True  # it was replaced
            target.unlink(missing_ok=True)
            copy_open_file(descriptor, target, length)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if length is not None or _stamp(before) == _stamp(after):
            return True
    return False


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
