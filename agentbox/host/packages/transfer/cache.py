"""Fetched files by digest, in the operator's cache directory. Several processes may use it at
once.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentbox.core.canonical import file_sha256
from agentbox.host.packages.errors import FetchError
from agentbox.plan.lockfile.model import LockEntry


class Cache:
    """The directory `files/`: `<sha256>` is complete and verified, `<sha256>.part` is
    incomplete.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def path(self, entry: LockEntry) -> Path:
        return self.directory / entry.sha256

    def has(self, entry: LockEntry) -> bool:
        """True if the complete file exists. It is hashed again; a corrupt file is deleted."""
        path = self.path(entry)
        if not path.exists():
            return False
        if not describe_difference(entry, path):
            return True
        path.unlink(missing_ok=True)
        return False

    @contextmanager
    def partial_file(self, entry: LockEntry) -> Iterator[Path]:
        """Exclusive use of the entry's `.part` file; waits for another process that writes it."""
        path = self.directory / f"{entry.sha256}.part"
        while True:
            with path.open("ab") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                if _is_same_file(stream.fileno(), path):
                    yield path
                    return

    def accept(self, entry: LockEntry, partial: Path) -> bool:
        """Renames a `.part` file to the entry's file if its bytes match the lock; returns whether
        they do.
        """
        if describe_difference(entry, partial):
            return False
        partial.rename(self.path(entry))
        return True


def describe_difference(entry: LockEntry, path: Path) -> str:
    """Describe how a file differs from its entry; "" if it does not."""
    size = path.stat().st_size
    if size != entry.size:
        return f"its size is {size}, the lock has {entry.size}"
    actual = file_sha256(path)
    return (
        ""
        if actual == entry.sha256
        else f"its SHA-256 is {actual[:12]}…, the lock has {entry.sha256[:12]}…"
    )


def mismatch_error(entry: LockEntry, detail: str) -> FetchError:
    """Return the error for bytes that differ from the lock."""
    return FetchError(
        f"cannot accept {entry.file}: {detail}", "The mirror or the network changed it."
    )


def _is_same_file(descriptor: int, path: Path) -> bool:
    """False if the file was renamed or deleted while waiting for its lock."""
    try:
        current = path.stat()
    except FileNotFoundError:
        return False
    opened = os.fstat(descriptor)
    return (current.st_dev, current.st_ino) == (opened.st_dev, opened.st_ino)
