"""The folder of a repository: its heads and its record, one writer at a time, and how a snapshot is
published and removed so that a kill at any byte leaves whole snapshots only.

A writer makes `.<id>.archive`, then `.<id>.head`, then renames the first, then the second,
then the record. A
removal renames the head to `.<id>.removed`, then removes the archive, then that.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from agentbox.backup.errors import BUSY, BackupError, damaged, not_found, repository_errors
from agentbox.backup.files import open_regular, take_owner, write_synced
from agentbox.backup.heads import (
    ID,
    RECORD_FILE,
    HeadDamaged,
    NewerFormat,
    RepositoryRecord,
    encode,
    read_head,
    read_record,
)
from agentbox.backup.repository import Fault
from agentbox.contracts.backups import Snapshot
from agentbox.core.canonical import sha256_hex
from agentbox.core.errors import ExitCode
from agentbox.core.files.atomic import sync_directory

LOCK: Final = "lock"
STAGING: Final = "staging"
_ARCHIVES: Final = (".tar.zst.age", ".tar.zst")
_RECORD: Final = f".{RECORD_FILE}.new"
_PARTS: Final = (".archive", ".head", ".removed")


@dataclass(frozen=True)
class Heads:
    """All heads of a folder: sound ones by id with the SHA-256 of their bytes, and why the others
    are not.
    """

    sound: Mapping[str, Snapshot]
    hashes: Mapping[str, str]
    faults: Mapping[str, HeadDamaged]

    @cached_property
    def in_order(self) -> tuple[Snapshot, ...]:
        """Oldest first."""
        return tuple(sorted(self.sound.values(), key=lambda head: (head.time, head.id)))

    @property
    def tip(self) -> str:
        """SHA-256 of the newest head that no other names, "" without one."""
        named = {head.previous for head in self.sound.values()}
        for head in reversed(self.in_order):
            if self.hashes[head.id] not in named:
                return self.hashes[head.id]
        return ""


class RepositoryFolder:
    """A folder that may not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._depth = 0

    def head_path(self, id: str) -> Path:
        return self.path / f"{id}.json"

    def part(self, id: str, kind: str) -> Path:
        """`kind` is archive, head or removed."""
        return self.path / f".{id}.{kind}"

    @property
    def staging(self) -> Path:
        """Where cuts are staged, a folder each; removed by `clean`."""
        return self.path / STAGING

    def heads(self) -> Heads:
        """Raises BackupError (exit 3) if the folder cannot be read; one that is not there is
        empty.
        """
        sound: dict[str, Snapshot] = {}
        hashes: dict[str, str] = {}
        faults: dict[str, HeadDamaged] = {}
        with repository_errors(f"read the repository {self.path}"):
            names = self._names() if self.path.exists() else []
            for name in names:
                id = name.removesuffix(".json")
                if id == name or name == RECORD_FILE or not ID.fullmatch(id):
                    continue
                try:
                    sound[id], hashes[id] = read_head(self.path, id)
                except HeadDamaged as error:
                    faults[id] = error
        return Heads(sound, hashes, faults)

    def get(self, id: str) -> Snapshot:
        """`latest` is the newest complete snapshot. Raises BackupError (exit 1)."""
        heads = self.heads()
        if id == "latest":
            complete = [head for head in heads.in_order if not head.partial]
            if not complete:
                raise not_found(id)
            return complete[-1]
        if (fault := heads.faults.get(id)) is not None:
            error = damaged(f"{id}.json", f"it {fault}")
            if isinstance(fault, NewerFormat):
                error.hint = "Use the release of agentbox that wrote it, or a later one."
            raise error
        if id not in heads.sound:
            raise not_found(id)
        return heads.sound[id]

    def archives(self) -> Sequence[str]:
        """Names of the files that are archives of a snapshot. Raises OSError."""
        return [name for name in self._names() if name.endswith(_ARCHIVES)]

    @contextmanager
    def exclusively(self, action: str) -> Iterator[None]:
        """Holds the folder, made where it is missing; within the block, for this object, again.
        Raises BackupError: exit 7 while another writer holds it, exit 3 if it cannot be written.
        """
        if self._depth:
            yield
            return
        with repository_errors(action):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = open_regular(self.path / LOCK, os.O_RDWR | os.O_CREAT)
            take_owner(descriptor, self.path)
        self._depth = 1
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise BackupError(
                    BUSY,
                    f"cannot {action}: another backup is running",
                    "Wait until it ends; `agentbox backup list` shows it.",
                    exit_code=ExitCode.BUSY,
                ) from error
            yield
        finally:
            self._depth = 0
            os.close(descriptor)

    def is_held(self) -> bool:
        """True while somebody writes."""
        try:
            descriptor = open_regular(self.path / LOCK)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def publish(self, head: Snapshot, data: bytes) -> str:
        """Publishes a head whose archive is the part of that name, or in another repository.
        Returns the SHA-256 of the head. Raises OSError, with nothing published.
        """
        part, record, head_sha256 = (
            self.part(head.id, "head"),
            self.path / _RECORD,
            sha256_hex(data),
        )
        write_synced(part, data)
        write_synced(record, encode(replace(self.record(), newest=head_sha256)))
        if head.engine == "archive":
            self.part(head.id, "archive").rename(self.path / head.archive)
        sync_directory(self.path)
        part.rename(self.head_path(head.id))
        record.rename(self.path / RECORD_FILE)
        sync_directory(self.path)
        return head_sha256

    def record(self) -> RepositoryRecord:
        """The record; a new one without one, or for a damaged one. Raises OSError."""
        try:
            return read_record(self.path) or RepositoryRecord()
        except HeadDamaged:
            return RepositoryRecord()

    def unpublish(self, heads: Heads, gone: Sequence[Snapshot]) -> None:
        """Removes heads and their archives, after noting that they were. Raises OSError."""
        ids = {head.id for head in gone}
        row = self.record()
        named = {head.previous for id, head in heads.sound.items() if id not in ids}
        named.add(row.newest)
        removed = {*row.pruned, *(heads.hashes[id] for id in ids)}
        row = replace(row, pruned=tuple(sorted(removed & named)))
        write_synced(self.path / _RECORD, encode(row))
        (self.path / _RECORD).rename(self.path / RECORD_FILE)
        for head in gone:
            self.head_path(head.id).rename(self.part(head.id, "removed"))
        sync_directory(self.path)
        for head in gone:
            (self.path / head.archive).unlink(missing_ok=True)
            self.part(head.id, "removed").unlink()
        sync_directory(self.path)

    def discard(self, id: str) -> list[str]:
        """Removes what a writer made of `id`, unless it was published. Raises OSError."""
        names = []
        if self.part(id, "head").exists() and not self.head_path(id).exists():
            names = [f"{id}{suffix}" for suffix in _ARCHIVES]
        names += [self.part(id, "archive").name, self.part(id, "head").name, _RECORD]
        return [name for name in names if _remove(self.path / name)]

    def clean(self, keep: str = "") -> list[str]:
        """Removes what killed writers left, but for what is staged of `keep`, and finishes what
        they removed; the caller holds the folder. Returns the names. Raises OSError.
        """
        names: list[str] = []
        for name in self._names():
            id = name[1:].rpartition(".")[0]
            if not name.startswith(".") or not name.endswith(_PARTS) or not ID.fullmatch(id):
                if name.startswith(f".{RECORD_FILE}."):
                    (self.path / name).unlink()
                    names.append(name)
                continue
            if name.endswith(".removed"):
                gone = [f"{id}{suffix}" for suffix in _ARCHIVES] + [name]
                names += [file for file in gone if _remove(self.path / file)]
            else:
                names += self.discard(id)
        if self.staging.is_symlink():
            self.staging.unlink()
        if self.staging.exists():
            for folder in sorted(self.staging.iterdir()):
                if folder.name == keep:
                    continue
                shutil.rmtree(folder) if folder.is_dir() else folder.unlink()
                names.append(f"{STAGING}/{folder.name}")
        return names

    def _names(self) -> list[str]:
        return sorted(entry.name for entry in self.path.iterdir())

    def chain_faults(self, heads: Heads) -> Iterator[Fault]:
        """Damaged heads, a damaged record, and heads that are named and gone. Raises OSError."""
        for id, fault in heads.faults.items():
            yield Fault(f"{id}.json", str(fault))
        try:
            row = read_record(self.path)
        except HeadDamaged as error:
            yield Fault(RECORD_FILE, str(error))
            return
        if row is None:
            if heads.sound or heads.faults:
                yield Fault(RECORD_FILE, "is missing")
            return
        known = {"", *heads.hashes.values(), *row.pruned}
        if heads.faults:  # one of them may be what is named
            return
        for head in heads.in_order:
            if head.previous not in known:
                yield Fault(
                    f"{head.id}.json", "names a head before it that is gone and was not pruned"
                )
        if row.newest not in known:
            yield Fault(RECORD_FILE, "names a newest head that is gone and was not pruned")


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
