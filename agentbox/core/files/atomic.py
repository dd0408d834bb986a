"""Atomic file writes: a reader sees the old file, the new one, or none. Standard library only."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentbox.core.canonical import canonical_json


def replace(path: Path, data: bytes, *, mode: int = 0o644, durable: bool = True) -> None:
    """Writes beside `path` and renames over it. `durable` also syncs the file and its directory.
    Raises OSError.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        try:
            write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def replace_json(path: Path, document: Any, *, mode: int = 0o644, durable: bool = True) -> None:
    """As `replace`, for canonical JSON."""
    replace(path, canonical_json(document), mode=mode, durable=durable)


@contextmanager
def probe_file(directory: Path) -> Iterator[int]:
    """Yields a descriptor of a new file, deleted at the end, to test whether the directory is
    writable. Agents may write there too: the random name is created exclusively, so that no
    existing file or link is opened. Raises OSError.
    """
    path = directory / f".agentbox-probe-{os.urandom(8).hex()}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Makes a rename in `directory` durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a file, or None if there is no file. Raises ValueError unless it is one JSON
    object.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError(f"{path.name} does not contain a JSON object")
    return document


def write_all(descriptor: int, data: bytes) -> None:
    """Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
