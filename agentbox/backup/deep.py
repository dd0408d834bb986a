"""What `verify --deep` looks at once a snapshot is decrypted into a folder: the journal, the SQLite
stores, and each object of the pods against its tag.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import apsw

from agentbox.adapters.events.journal.verify import verify
from agentbox.adapters.memory import local_sqlite as memory
from agentbox.adapters.pods.local.bodies import digest_of, etag_of
from agentbox.backup.archive.reading import unpack
from agentbox.backup.repository import Fault, Repository
from agentbox.contracts.backups import Snapshot
from agentbox.core.errors import AgentboxError, ExitCode

_MAGIC: Final = b"SQLite format 3\0"
_MEMORY: Final = "state/memory/memory.db"
_PODS: Final = "state/pods/index.db"
_OBJECTS: Final = "state/pods/objects"


def verify_deep(
    repository: Repository, snapshot: Snapshot, identities: Sequence[Any], folder: Path
) -> tuple[Fault, ...]:
    """Decrypts a snapshot into `folder`, empty and private, and checks it all. Raises BackupError
    if it cannot be decrypted, AgentboxError (exit 3) if the folder cannot hold it.
    """
    with repository.open(snapshot.id, identities) as members:
        try:
            faults = unpack(members, snapshot.members, folder)
        except OSError as error:
            raise AgentboxError(
                f"cannot verify {snapshot.id}: it does not fit into {folder}: {error.strerror}",
                "TMPDIR selects another folder.",
                exit_code=ExitCode.PREREQUISITE,
            ) from error
    return (*faults, *content_faults(snapshot, folder))


def content_faults(snapshot: Snapshot, folder: Path) -> Iterator[Fault]:
    """Faults of what is below `folder`."""
    yield from _journal_faults(snapshot, folder)
    for row in snapshot.members:
        path = folder / row.path
        if row.path.startswith("state/") and _is_store(path):
            yield from _store_faults(row.path, path)
    yield from _pod_faults(folder)


def _journal_faults(snapshot: Snapshot, folder: Path) -> Iterator[Fault]:
    directory = folder / "state/events"
    if not any(row.path.startswith("state/events/") for row in snapshot.members):
        return
    report = verify(directory)
    if report.error is not None:
        place = f", line {report.error.line}" if report.error.line else ""
        yield Fault(f"state/events/{report.error.file}{place}", report.error.reason)
    elif report.last_seq < snapshot.seq:
        yield Fault(
            "state/events", f"ends with record {report.last_seq}, the cut is record {snapshot.seq}"
        )


def _is_store(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _store_faults(name: str, path: Path) -> Iterator[Fault]:
    try:
        with closing(_opened(path)) as connection:
            if name == _MEMORY:
                memory.prepare(connection)
            rows = connection.execute("PRAGMA integrity_check").fetchall()
    except apsw.Error as error:
        yield Fault(name, f"cannot be read: {error}")
        return
    if rows != [("ok",)]:
        yield Fault(name, str(rows[0][0]))


def _opened(path: Path) -> apsw.Connection:
    """Read-only, without a file beside it."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"{path.as_uri()}?immutable=1", flags=flags)


def _pod_faults(folder: Path) -> Iterator[Fault]:
    path = folder / _PODS
    if not _is_store(path):
        return
    try:
        with closing(_opened(path)) as connection:
            query = "SELECT path, content_type, etag FROM objects ORDER BY path"
            for name, content_type, etag in connection.execute(query):
                if fault := _pod_fault(folder, str(name), str(content_type), str(etag)):
                    yield Fault(f"{_OBJECTS}/{name}", fault)
    except apsw.Error as error:
        yield Fault(_PODS, f"cannot be read: {error}")


def _pod_fault(folder: Path, name: str, content_type: str, etag: str) -> str:
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(folder / _OBJECTS / name, flags)
    except OSError:
        return "is in the index of the pods, and not in the snapshot"
    try:
        is_same = etag_of(digest_of(descriptor), content_type) == etag
    finally:
        os.close(descriptor)
    return "" if is_same else "differs from its tag in the index of the pods"
