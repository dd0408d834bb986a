"""Walks a tree that others may change: by descriptors of its folders, so that no link is followed,
and without recursion.
"""

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

GONE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)
UNREADABLE: Final = (errno.EACCES, errno.EPERM)
MAX_DEPTH: Final = 200  # folders: each takes a descriptor, and shutil.rmtree of a copy recurses
MAX_PATH: Final = 3500  # bytes of PATH_MAX (4096); the rest is for the folder that a copy is in
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_DIRECTORY
Skip = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is at `path` below the tree, "" for the tree itself: `name` in the open folder
    `directory`. A folder comes before what it holds, and again, `ended`, after it.
    """

    path: str
    name: str
    directory: int
    status: os.stat_result
    ended: bool = False


@dataclass(frozen=True, slots=True)
class _OpenFolder:
    entry: Entry
    descriptor: int
    names: Iterator[str]


def walk(
    root: Path,
    *,
    skip: Skip = lambda _path: False,
    unread: Callable[[str], None] = lambda _path: None,
) -> Generator[Entry]:
    """Entries in the order of their names, whatever their kind. `skip` is asked with each path.
    `unread` gets those of folders that cannot be read, and of what lies deeper than MAX_DEPTH and
    MAX_PATH allow. Raises OSError.
    """
    folders: list[_OpenFolder] = []
    try:
        entry = _enter(folders, "", str(root), None, unread)
        if entry is not None:
            yield entry
        while folders:
            folder = folders[-1]
            name = next(folder.names, None)
            if name is None:
                os.close(folders.pop().descriptor)
                yield replace(folder.entry, ended=True)
                continue
            path = f"{folder.entry.path}/{name}" if folder.entry.path else name
            if skip(path):
                continue
            if path.count("/") >= MAX_DEPTH or len(os.fsencode(path)) > MAX_PATH:
                unread(path)
                continue
            entry = _enter(folders, path, name, folder.descriptor, unread)
            if entry is not None:
                yield entry
    finally:
        for folder in folders:
            os.close(folder.descriptor)


def _enter(
    folders: list[_OpenFolder],
    path: str,
    name: str,
    directory: int | None,
    unread: Callable[[str], None],
) -> Entry | None:
    """An entry, None for one that is gone or cannot be read; a folder is opened."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        entry = Entry(path, name, -1 if directory is None else directory, status)
        if stat.S_ISDIR(status.st_mode):
            descriptor = os.open(name, _FLAGS, dir_fd=directory)
            try:
                entry = replace(entry, status=os.fstat(descriptor))
                names = iter(sorted(os.listdir(descriptor)))  # noqa: PTH208 - of a descriptor
            except BaseException:
                os.close(descriptor)
                raise
            folders.append(_OpenFolder(entry, descriptor, names))
    except OSError as error:
        if error.errno in UNREADABLE:
            unread(path)
        elif error.errno not in GONE:
            raise
        return None
    return entry
