"""Opens and reads files of a branch, whose permissions an agent may have removed; no link is
followed.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK: Final = 1 << 20


def hash_file(descriptor: int) -> tuple[str, int]:
    """SHA-256 and size of the content."""
    digest, size = hashlib.sha256(), 0
    while data := os.read(descriptor, _CHUNK):
        digest.update(data)
        size += len(data)
    return digest.hexdigest(), size


@contextmanager
def open_agent_directory(name: str, parent_fd: int | None) -> Iterator[int]:
    """Open a directory of the branch and restore its owner's permissions, which an agent may have
    removed; applied directories always have them."""
    path_fd = os.open(
        name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent_fd
    )
    try:
        mode = stat.S_IMODE(os.fstat(path_fd).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            Path(f"/proc/self/fd/{path_fd}").chmod(mode | stat.S_IRWXU)
        descriptor = os.open(name, _DIRECTORY_FLAGS, dir_fd=parent_fd)
    finally:
        os.close(path_fd)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_entry(name: str, directory: int, flags: int) -> Iterator[int]:
    """Open for reading, even without permissions for the owner. Raises OSError."""
    try:
        descriptor = os.open(name, flags, dir_fd=directory)
    except PermissionError:
        path_fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            proc_path, mode = (
                Path(f"/proc/self/fd/{path_fd}"),
                stat.S_IMODE(os.fstat(path_fd).st_mode),
            )
            proc_path.chmod(mode | stat.S_IRUSR | stat.S_IXUSR)
            descriptor = os.open(name, flags, dir_fd=directory)
            proc_path.chmod(mode)
        finally:
            os.close(path_fd)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
