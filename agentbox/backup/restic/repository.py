"""`ResticRepository`: heads in a folder, and what they name in a repository of restic."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentbox.backup.archive.reading import opened_tar
from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.archive.staged_tar import StagedTar
from agentbox.backup.archive.streams import ArchiveDamaged
from agentbox.backup.errors import GONE, BackupError, damaged, repository_errors
from agentbox.backup.folder import Heads
from agentbox.backup.folder_repository import (
    MAKE,
    PRUNE,
    FolderRepository,
    encoded,
    read_cut,
    refuse_existing,
)
from agentbox.backup.heads import HeadDamaged, decode_head, new_head
from agentbox.backup.repository import Fault, OpenedMember, Written
from agentbox.backup.restic.command import FOLDER, Restic
from agentbox.backup.restic.failures import failure, faults_of_check
from agentbox.backup.restic.settings import ResticSettings
from agentbox.contracts.backups import Snapshot

DATA_TAG: Final = "agentbox"
HEAD_TAG: Final = "agentbox-head"
TAR: Final = "snapshot.tar"
_HEAD: Final = "head.json"
_CLEAN: Final = "clean the repository"


@dataclass(frozen=True, slots=True)
class _Stored:
    """A snapshot of restic that agentbox made: of the tar, or of the head, of snapshot `of`."""

    id: str
    of: str
    is_head: bool
    box: str


class ResticRepository(FolderRepository):
    """A snapshot is one tar in a snapshot of restic. A second one has a copy of its head, so that a
    host without the folder finds it. Heads of archives in the folder stay usable. `box`: whose
    leftovers `clean` removes.
    """

    def __init__(self, folder: Path, settings: ResticSettings, box: str = "") -> None:
        super().__init__(folder)
        self._settings, self._box = settings, box
        self._restic = Restic(folder, settings)
        self._archives = ArchiveRepository(folder, None)

    def write(self, staged: Path, *, min_free: int = 0, rate: int = 0) -> Written:
        cut = read_cut(staged)
        with self._folder.exclusively(MAKE):
            heads = self._folder.heads()
            refuse_existing(cut, heads)
            tar = StagedTar(staged, cut.time)
            is_here = self._settings.address is None
            with repository_errors(MAKE):
                self._check_room(tar.total_bytes() if is_here else 0, min_free)
            self._prepare(heads)
            chunks = _Hashed(tar.chunks())
            with repository_errors(MAKE):
                stored = self._store(cut.id, TAR, chunks, host=cut.box, rate=rate)
                head = new_head(
                    cut,
                    engine="restic",
                    archive=stored,
                    size=chunks.size,
                    sha256=chunks.sha256,
                    encrypt="restic",
                    recipients=0,
                    previous=heads.tip,
                    members=tar.members,
                )
                data = encoded(head)
                self._store(cut.id, _HEAD, [data], host=cut.box)
                head_sha256 = self._folder.publish(head, data)
        return Written(self._folder.get(cut.id), head_sha256)

    def verify(self, id: str) -> Sequence[Fault]:
        """Its snapshot of restic is there, and `restic check` finds no fault in the repository, of
        which it reads `verify_percent`.
        """
        head = self._folder.get(id)
        if head.engine == "archive":
            return self._archives.verify(id)
        return self._faults(f"verify snapshot {head.id}", (head,))

    def verify_all(self) -> Sequence[Fault]:
        heads = self.list()
        faults = list(self._archives.verify_all())
        stored = [head for head in heads if head.engine == "restic"]
        return faults + (self._faults("verify the repository", stored) if stored else [])

    def verify_heads(self) -> Sequence[Fault]:
        return self._archives.verify_heads()

    @contextmanager
    def open(self, id: str, identities: Sequence[Any]) -> Iterator[Iterator[OpenedMember]]:
        head = self._folder.get(id)
        if head.engine == "archive":
            with self._archives.open(id, identities) as members:
                yield members
            return
        action = f"read snapshot {head.id}"
        try:
            with self._restic.dumped(action, head.archive, TAR) as plain:
                stream = _HashingReader(plain)
                with opened_tar(stream) as members:  # type: ignore[arg-type]
                    yield members
        except ArchiveDamaged as error:
            raise damaged(head.id, str(error)) from error
        if (stream.size, stream.sha256) != (head.size, head.sha256):
            raise damaged(head.id, "it differs from its hash in the head")

    def clean(self, keep: str = "") -> Sequence[str]:
        """Also in restic: a tar without its head, or a head without its tar, is what a killed
        writer or pruner left. A whole snapshot whose head is not in the folder is found again.
        """
        with self._folder.exclusively(MAKE):
            names = list(super().clean(keep))
            rows = self._rows(_CLEAN) or ()
            whole = _whole(rows)
            left = [row for row in rows if row.of not in whole and row.box == self._box]
            if left:
                self._forget(_CLEAN, left)
            self._find_again([row for row in rows if row.of in whole and row.box == self._box])
        return [*names, *(f"{FOLDER}/{row.id}" for row in left)]

    def find(self) -> None:
        """Fills the folder with the heads of all snapshots of restic, of any box."""
        with self._folder.exclusively("read the repository"):
            rows = self._rows("read the repository")
            if rows is None:
                raise _gone("read the repository")
            whole = _whole(rows)
            self._find_again([row for row in rows if row.of in whole])

    def _find_again(self, rows: Sequence[_Stored]) -> None:
        heads = self._folder.heads()
        missing = [
            row
            for row in rows
            if row.is_head and row.of not in heads.sound and row.of not in heads.faults
        ]
        found = [self._read_head(row) for row in missing]
        for head, data in sorted(found, key=lambda pair: (pair[0].time, pair[0].id)):
            with repository_errors(_CLEAN):
                self._folder.publish(head, data)

    def _read_head(self, row: _Stored) -> tuple[Snapshot, bytes]:
        action = f"read the head of {row.of}"
        with self._restic.dumped(action, row.id, _HEAD) as stream:
            data = stream.read()
        try:
            return decode_head(data, row.of), data
        except HeadDamaged as error:
            raise damaged(f"{FOLDER}/{row.id}", f"it {error}") from error

    def _unpublish(self, heads: Heads, gone: Sequence[Snapshot]) -> None:
        """The heads of the folder go first: what a kill leaves is found again, whole."""
        ids = {head.id for head in gone if head.engine == "restic"}
        super()._unpublish(heads, gone)
        if ids:
            rows = self._rows(PRUNE) or ()
            self._forget(PRUNE, [row for row in rows if row.of in ids])

    def _forget(self, action: str, rows: Sequence[_Stored]) -> None:
        if rows:
            self._changing(action, "forget", "--quiet", "--prune", *(row.id for row in rows))

    def _changing(self, action: str, *arguments: str) -> None:
        """Runs what locks the whole repository; the lock of a killed restic is removed first."""
        code, _, said = self._restic.result(action, *arguments)
        if code and "already locked" in said:
            self._restic.run(action, "unlock", "--quiet")
            code, _, said = self._restic.result(action, *arguments)
        if code:
            raise failure(action, said)

    def _prepare(self, heads: Heads) -> None:
        """Makes the repository where there is none, and never was one."""
        if self._settings.address is None and (self.folder / FOLDER / "config").is_file():
            return
        if self._rows(MAKE) is not None:
            return
        if any(head.engine == "restic" for head in heads.sound.values()):
            raise _gone(MAKE)
        self._restic.run(MAKE, "init", "--quiet")

    def _store(
        self, id: str, name: str, chunks: Iterable[bytes], *, host: str, rate: int = 0
    ) -> str:
        tag = HEAD_TAG if name == _HEAD else DATA_TAG
        stored = self._restic.store(MAKE, name, chunks, host=host, tags=(tag, id), rate=rate)
        if name == _HEAD or len(stored) == 64:
            return stored
        rows = self._rows(MAKE) or ()  # releases before 0.17 print the beginning
        return next(row.id for row in rows if row.id.startswith(stored) and row.of == id)

    def _rows(self, action: str) -> Sequence[_Stored] | None:
        """What agentbox stored, oldest first; None without a repository."""
        code, printed, said = self._restic.result(
            action, "snapshots", "--no-lock", "--json", "--tag", DATA_TAG, "--tag", HEAD_TAG
        )
        if code:
            error = failure(action, said)
            if error.reason == GONE:
                return None
            raise error
        rows = (_stored(row) for row in json.loads(printed) or ())
        return [row for row in rows if row is not None]

    def _faults(self, action: str, heads: Sequence[Snapshot]) -> list[Fault]:
        rows = self._rows(action)
        if rows is None:
            raise _gone(action)
        there = {row.id for row in rows}
        faults = [
            Fault(f"{head.id}.json", f"names {head.archive[:8]} of restic, which is not there")
            for head in heads
            if head.archive not in there
        ]
        percent = self._settings.verify_percent
        share = (f"--read-data-subset={percent}%",) if percent else ()
        code, _, said = self._restic.result(action, "check", "--no-lock", "--quiet", *share)
        return [*faults, *faults_of_check(said)] if code else faults


def _stored(row: Mapping[str, Any]) -> _Stored | None:
    tags = list(row.get("tags") or ())
    kind = HEAD_TAG if HEAD_TAG in tags else DATA_TAG
    others = [tag for tag in tags if tag != kind]
    if len(others) != 1:
        return None
    return _Stored(row["id"], others[0], kind == HEAD_TAG, row.get("hostname", ""))


def _whole(rows: Iterable[_Stored]) -> set[str]:
    """Ids of snapshots with their tar and their head."""
    rows = list(rows)
    return {row.of for row in rows if row.is_head} & {row.of for row in rows if not row.is_head}


def _gone(action: str) -> BackupError:
    return BackupError(
        GONE,
        f"cannot {action}: there is no repository of restic any more, and the folder of backups "
        "lists snapshots of it",
        "Bring it back, or make a new one with `restic init`; `backup.repository` says where.",
    )


class _Hashed:
    """Chunks, counted and hashed on their way."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks, self._digest, self.size = chunks, hashlib.sha256(), 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._digest.update(chunk)
            self.size += len(chunk)
            yield chunk

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


class _HashingReader:
    """A stream that is read, counted and hashed on its way."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._digest, self.size = stream, hashlib.sha256(), 0

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(size)
        self._digest.update(data)
        self.size += len(data)
        return data

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()
