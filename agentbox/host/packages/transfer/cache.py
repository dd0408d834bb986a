"""Fetched files by digest, in the operator's cache folder. Several processes may work in it at once."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentbox.core.canonical import file_sha256
from agentbox.host.packages.errors import FetchError
from agentbox.plan.lockfile.model import Entry


class Cache:
    """The folder `files/`: `<sha256>` is whole and was checked, `<sha256>.part` is being written or was broken off."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def path(self, entry: Entry) -> Path:
        return self.folder / entry.sha256

    def has(self, entry: Entry) -> bool:
        """True when the file is there, whole. Its bytes are hashed again; a file that decayed is deleted."""
        path = self.path(entry)
        if not path.exists():
            return False
        if not difference(entry, path):
            return True
        path.unlink(missing_ok=True)
        return False

    @contextmanager
    def part(self, entry: Entry) -> Iterator[Path]:
        """Exclusive use of the entry's `.part` file; waits for another process that is writing it."""
        path = self.folder / f"{entry.sha256}.part"
        while True:
            with path.open("ab") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                if _same(held.fileno(), path):
                    yield path
                    return

    def accept(self, entry: Entry, part: Path) -> bool:
        """Makes a `.part` file the entry's own when its bytes are the locked ones; says whether they are."""
        if difference(entry, part):
            return False
        part.rename(self.path(entry))
        return True


def difference(entry: Entry, path: Path) -> str:
    """In what a file differs from its entry, in words; "" when it does not."""
    size = path.stat().st_size
    if size != entry.size:
        return f"its size is {size}, the lock says {entry.size}"
    found = file_sha256(path)
    return "" if found == entry.sha256 else f"SHA-256 is {found[:12]}…, the lock says {entry.sha256[:12]}…"


def mismatch(entry: Entry, what: str) -> FetchError:
    """The failure for bytes that are not the locked ones."""
    return FetchError(f"cannot accept {entry.file}: {what}", "The mirror or the network altered it.")


def _same(descriptor: int, path: Path) -> bool:
    """False when the file was renamed or deleted while its lock was waited for."""
    try:
        now = path.stat()
    except FileNotFoundError:
        return False
    opened = os.fstat(descriptor)
    return (now.st_dev, now.st_ino) == (opened.st_dev, opened.st_ino)
