"""Directories and files below a root, opened one name at a time from its descriptor. Links are
never followed (P10)."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import (
    AdapterError,
    BackendError,
    ContainerNotEmpty,
    NotFound,
    PermissionDenied,
    disk_full_error,
    is_disk_full,
)

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_ATTEMPTS = 8  # to create a directory that another call removes concurrently


class ObjectTree:
    """An open root. Methods raise AdapterError only; `translate_errors` converts OSError."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._descriptor = os.open(root, _DIRECTORY_FLAGS)

    def close(self) -> None:
        os.close(self._descriptor)

    def is_present(self) -> bool:
        """Return False if the open directory is no longer the one at its path."""
        try:
            return os.path.samestat(self.root.stat(), os.fstat(self._descriptor))
        except OSError:
            return False

    @contextmanager
    def open_directory(
        self, parts: Sequence[str], path: str, *, create: bool = False
    ) -> Iterator[int]:
        """Yield a descriptor of the directory, created with its parents on request. Raises
        NotFound, PermissionDenied, ValidationError."""
        dir_fd = os.dup(self._descriptor)
        try:
            for name in parts:
                child_fd = self._open_child(dir_fd, name, path, create=create)
                os.close(dir_fd)
                dir_fd = child_fd
            yield dir_fd
        finally:
            os.close(dir_fd)

    def _open_child(self, dir_fd: int, name: str, path: str, *, create: bool) -> int:
        for _ in range(_MAX_ATTEMPTS):
            try:
                return os.open(name, _DIRECTORY_FLAGS, dir_fd=dir_fd)
            except FileNotFoundError:
                if not create:
                    raise not_found(path) from None
                _make_directory(dir_fd, name)
            except OSError as error:
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                if not stat.S_ISREG(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
                    raise access_denied(path) from None
                if create:
                    raise invalid_value("/path", f"is below {name!r}, which is an object") from None
                raise not_found(path) from None
        raise BackendError(
            f"cannot create {path}: its container is being removed", slot="pods", impl="local-fs"
        )


def _make_directory(dir_fd: int, name: str) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=dir_fd)
    except FileExistsError:
        return
    os.fsync(dir_fd)


def stat_entry(dir_fd: int, name: str, path: str) -> os.stat_result | None:
    """Return the stat of a regular file or directory; None if absent. Raises PermissionDenied."""
    try:
        status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return status
    if not is_plain_file(status):
        raise access_denied(path)
    return status


def open_file(dir_fd: int, name: str, path: str) -> tuple[int, os.stat_result]:
    """Return a descriptor of the object and its stat. Raises NotFound, also for a container, and
    PermissionDenied."""
    entry = stat_entry(dir_fd, name, path)
    if entry is None or stat.S_ISDIR(entry.st_mode):
        raise not_found(path)
    try:
        descriptor = os.open(name, _FILE_FLAGS, dir_fd=dir_fd)
    except FileNotFoundError:
        raise not_found(path) from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise access_denied(path) from None
        raise
    status = os.fstat(descriptor)
    if not is_plain_file(status):
        os.close(descriptor)
        raise access_denied(path)
    return descriptor, status


def remove_directory(dir_fd: int, name: str, path: str) -> None:
    """Remove an empty directory. Raises NotFound, ContainerNotEmpty, PermissionDenied."""
    status = stat_entry(dir_fd, name, path)
    if status is None or not stat.S_ISDIR(status.st_mode):
        raise not_found(path)
    try:
        os.rmdir(name, dir_fd=dir_fd)
    except FileNotFoundError:
        raise not_found(path) from None
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise ContainerNotEmpty(f"cannot delete {path}: it is not empty", path=path) from None
    os.fsync(dir_fd)


def is_plain_file(status: os.stat_result) -> bool:
    """Return whether it is a regular file without other links. 0 links: it was replaced while being
    opened."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink <= 1


def not_found(path: str) -> NotFound:
    return NotFound(f"cannot find {path}", resource="pod", id=path)


def access_denied(path: str) -> PermissionDenied:
    return PermissionDenied(
        f"cannot use {path}: it is, or is below, a link, a device, a pipe or a hard link",
        hint="use plain files and directories only",
        scope="pods",
    )


@contextmanager
def translate_errors(action: str) -> Iterator[None]:
    """Translate OSError to BackendError with the reason of the system, never a host path."""
    try:
        yield
    except AdapterError:
        raise
    except OSError as error:
        if is_disk_full(error):
            raise disk_full_error(action) from error
        raise BackendError(
            f"cannot {action}: {error.strerror or error}", slot="pods", impl="local-fs"
        ) from error
