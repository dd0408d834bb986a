"""The folders and files below a root, reached one name at a time from its descriptor: no link is ever followed (P10)."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import AdapterError, BackendError, NotFound, PermissionDenied, disk_full, is_disk_full

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TRIES = 8  # of making a folder that another call removes at the same time


class Tree:
    """An open root. Every method raises AdapterError alone, `typed` makes them of what the system says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._descriptor = os.open(root, _FOLDER)

    def close(self) -> None:
        os.close(self._descriptor)

    def still_there(self) -> bool:
        """False once the folder that is open is no longer the one at its path."""
        try:
            return os.path.samestat(self.root.stat(), os.fstat(self._descriptor))
        except OSError:
            return False

    @contextmanager
    def folder(self, parts: Sequence[str], path: str, *, make: bool = False) -> Iterator[int]:
        """A descriptor of the folder, made with its parents if asked. Raises NotFound, PermissionDenied, ValidationError."""
        at = os.dup(self._descriptor)
        try:
            for part in parts:
                below = self._enter(at, part, path, make=make)
                os.close(at)
                at = below
            yield at
        finally:
            os.close(at)

    def _enter(self, at: int, part: str, path: str, *, make: bool) -> int:
        for _ in range(_TRIES):
            try:
                return os.open(part, _FOLDER, dir_fd=at)
            except FileNotFoundError:
                if not make:
                    raise missing(path) from None
                _make(at, part)
            except OSError as error:
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                if not stat.S_ISREG(os.stat(part, dir_fd=at, follow_symlinks=False).st_mode):
                    raise denied(path) from None
                if make:
                    raise refuse("/path", f"lies below {part!r}, which is an object") from None
                raise missing(path) from None
        raise BackendError(f"cannot make {path}: its container keeps vanishing", slot="pods", impl="local-fs")


def _make(at: int, part: str) -> None:
    try:
        os.mkdir(part, 0o700, dir_fd=at)
    except FileExistsError:
        return
    os.fsync(at)


def look(at: int, name: str, path: str) -> os.stat_result | None:
    """What the folder holds under that name: a regular file or a folder, None for nothing. Raises PermissionDenied."""
    try:
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        return found
    if not plain(found):
        raise denied(path)
    return found


def open_file(at: int, name: str, path: str) -> tuple[int, os.stat_result]:
    """A descriptor of the object and what it is. Raises NotFound, also for a container, and PermissionDenied."""
    seen = look(at, name, path)
    if seen is None or stat.S_ISDIR(seen.st_mode):
        raise missing(path)
    try:
        descriptor = os.open(name, _FILE, dir_fd=at)
    except FileNotFoundError:
        raise missing(path) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise denied(path) from None
        raise
    found = os.fstat(descriptor)
    if not plain(found):
        os.close(descriptor)
        raise denied(path)
    return descriptor, found


def plain(found: os.stat_result) -> bool:
    """A regular file that no other name leads to. 0 links: it was replaced while it was being opened."""
    return stat.S_ISREG(found.st_mode) and found.st_nlink <= 1


def missing(path: str) -> NotFound:
    return NotFound(f"cannot find {path}", resource="pod", id=path)


def denied(path: str) -> PermissionDenied:
    return PermissionDenied(
        f"cannot use {path}: it is, or lies below, a link, a device, a pipe, or a file with a second name",
        hint="only plain files and folders are served", scope="pods",
    )  # fmt: skip


@contextmanager
def typed(doing: str) -> Iterator[None]:
    """Makes a BackendError of what the system refuses; names the file system's reason, never a host path."""
    try:
        yield
    except AdapterError:
        raise
    except OSError as error:
        if is_disk_full(error):
            raise disk_full(doing) from error
        raise BackendError(f"cannot {doing}: {error.strerror or error}", slot="pods", impl="local-fs") from error
