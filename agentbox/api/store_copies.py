"""Rollback copies of stores, in the state volume beside them: made while the box is down, renamed
back if its new generation is not good.
"""

import fcntl
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentbox.core.canonical import file_sha256
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths

_FICLONE: Final = 0x40049409  # linux/fs.h: share the blocks of another file
_SPARE: Final = 64 << 20  # bytes that stay free for the box itself
_SIDE_FILES: Final = ("-wal", "-shm")  # of SQLite in WAL mode
_MARKER: Final = "restoring"  # beside the copies: some of them may be in place


def copies_folder(paths: Paths, generation: int) -> Path:
    """Where the copies made before a generation are."""
    return paths.state / "generations" / str(generation)


def copy(paths: Paths, generation: int, stores: Sequence[str]) -> list[dict[str, Any]]:
    """Copies the stores, what belongs to them and the records of all stores; returns name, size
    and SHA-256 of each file. Room is asked first. Raises AgentboxError, OSError.
    """
    if not stores:
        return []
    names = [name for store in stores for name in _files_of(paths.state, store)]
    names += sorted(
        str(path.relative_to(paths.state)) for path in paths.state.glob("stores/*.json")
    )
    needed = sum((paths.state / name).stat().st_size for name in names)
    free = os.statvfs(paths.state)
    available = free.f_bavail * free.f_frsize
    if needed + _SPARE > available:
        raise AgentboxError(
            f"cannot copy the stores: {needed + _SPARE} bytes are needed, {available} are free"
        )
    folder = copies_folder(paths, generation)
    if folder.exists():
        shutil.rmtree(folder)  # of a try that was interrupted
    rows = []
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _copy(paths.state / name, target)
        rows.append({"name": name, "size": target.stat().st_size, "sha256": file_sha256(target)})
    return rows


def restore(paths: Paths, generation: int, copies: Sequence[Mapping[str, Any]]) -> None:
    """Renames the copies into place. A call that was interrupted is finished by the next one: its
    marker says that what is missing is in place. Raises AgentboxError for a copy that is not what
    was made, before anything changes.
    """
    folder, waiting = copies_folder(paths, generation), []
    marker = folder / _MARKER
    begun = marker.exists()
    for row in copies:
        source, target = folder / row["name"], paths.state / row["name"]
        if source.exists() and file_sha256(source) == row["sha256"]:
            waiting.append((source, target))
        elif source.exists() or not (begun and target.exists()):
            raise AgentboxError(f"cannot restore {row['name']}: its copy is damaged or missing")
    if waiting and not begun:
        marker.touch()
        _sync(folder)
    kept = {row["name"] for row in copies}
    for source, target in waiting:
        for suffix in _SIDE_FILES:
            side = f"{target.relative_to(paths.state)}{suffix}"
            if target.suffix == ".db" and side not in kept:
                (paths.state / side).unlink(missing_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        _sync(target.parent)


def discard(paths: Paths, generation: int) -> None:
    """Removes the copies of a generation. Raises OSError."""
    folder = copies_folder(paths, generation)
    if folder.exists():
        shutil.rmtree(folder)


def _files_of(state: Path, store: str) -> list[str]:
    """The store and its write-ahead log, if one was left."""
    return [name for name in (store, f"{store}-wal") if (state / name).exists()]


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as reader, target.open("wb") as writer:
        try:
            fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
        except OSError:  # another file system, or one without shared blocks
            shutil.copyfileobj(reader, writer)
        writer.flush()
        os.fsync(writer.fileno())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
