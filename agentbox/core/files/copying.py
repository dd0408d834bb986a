"""Copies of files and trees that others may change. No link is followed; a file that goes away is
no error.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

_CHUNK = 1 << 24  # bytes a call
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = _READ | os.O_DIRECTORY
Skip = Callable[[str], bool]


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
        if error.errno in _GONE:
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
    Returns the paths of files that changed in each of three tries. Raises OSError.
    """
    changed: list[str] = []
    try:
        root = os.open(source, _DIRECTORY)
    except OSError as error:
        if error.errno in _GONE:
            return changed
        raise
    try:
        _copy_directory(root, "", target, skip, stop, lengths, changed)
    finally:
        os.close(root)
    return changed


def file_sizes(source: Path, skip: Skip = lambda _path: False) -> dict[str, int]:
    """The size of each regular file below a directory, by path below it."""
    return {
        path: status.st_size
        for path, status in _walk(source, "")
        if stat.S_ISREG(status.st_mode) and not skip(path)
    }


def _walk(directory: Path, below: str) -> Iterator[tuple[str, os.stat_result]]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(directory) as entries:
        for entry in entries:
            path = f"{below}{entry.name}"
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                yield path, status
                if stat.S_ISDIR(status.st_mode):
                    yield from _walk(Path(entry.path), f"{path}/")


def _copy_directory(
    descriptor: int,
    below: str,
    target: Path,
    skip: Skip,
    stop: Callable[[], None],
    lengths: dict[str, int] | None,
    changed: list[str],
) -> None:
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = os.fstat(descriptor)
    for name in sorted(os.listdir(descriptor)):
        path = f"{below}{name}"
        if skip(path):
            continue
        stop()
        try:
            mode = os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                (target / name).symlink_to(os.readlink(name, dir_fd=descriptor))
            elif stat.S_ISDIR(mode):
                child = os.open(name, _DIRECTORY, dir_fd=descriptor)
                try:
                    _copy_directory(child, f"{path}/", target / name, skip, stop, lengths, changed)
                finally:
                    os.close(child)
            elif stat.S_ISREG(mode):
                length = None if lengths is None else lengths.get(path)
                if not _copy_entry(descriptor, name, target / name, length):
                    changed.append(path)
        except OSError as error:
            if error.errno not in _GONE:
                raise
    target.chmod(stat.S_IMODE(status.st_mode) & 0o700)
    os.utime(target, ns=(status.st_mtime_ns, status.st_mtime_ns))


def _copy_entry(directory: int, name: str, target: Path, length: int | None) -> bool:
    """Returns whether the copy is what the file was at some moment."""
    for _ in range(3):
        descriptor = os.open(name, _READ, dir_fd=directory)
        try:
            before = os.fstat(descriptor)
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
