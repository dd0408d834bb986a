"""`ArchiveRepository`: a folder with one archive and one head for each snapshot."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from agentbox.backup.archive.keys import parse_recipients, wrong_identity
from agentbox.backup.archive.reading import opened
from agentbox.backup.archive.staged_tar import StagedTar
from agentbox.backup.archive.streams import (
    ArchiveDamaged,
    HashingFile,
    NoMatchingIdentity,
    write_archive,
)
from agentbox.backup.errors import (
    NO_ROOM,
    UNUSABLE,
    BackupError,
    damaged,
    repository_errors,
)
from agentbox.backup.files import MAX_HEAD, NotRegular, open_file, open_regular, take_owner
from agentbox.backup.folder import Heads, RepositoryFolder
from agentbox.backup.heads import ID, archive_name, encode, new_head
from agentbox.backup.repository import Fault, OpenedMember, Written
from agentbox.backup.retention import Policy, removable
from agentbox.contracts.backups import CUT_FILE, Cut, Snapshot
from agentbox.core import clock
from agentbox.core.files import atomic
from agentbox.core.slot_errors import AdapterError

MAKE: Final = "make a backup"
PRUNE: Final = "prune backups"
_STAGE_AGAIN: Final = "What was staged is not usable. Make a new one: agentbox backup create"


class ArchiveRepository:
    """`recipients` are public keys of age or ssh; None for archives that are not encrypted."""

    def __init__(self, folder: Path, recipients: Sequence[str] | None) -> None:
        self._folder = RepositoryFolder(folder)
        self._recipients = recipients

    @property
    def folder(self) -> Path:
        return self._folder.path

    @property
    def staging(self) -> Path:
        """Where cuts are staged, a folder each."""
        return self._folder.staging

    def exclusively(self) -> AbstractContextManager[None]:
        return self._folder.exclusively(MAKE)

    def write(self, staged: Path, *, min_free: int = 0, rate: int = 0) -> Written:
        keys = None if self._recipients is None else parse_recipients(self._recipients)
        cut = read_cut(staged)
        with self._folder.exclusively(MAKE):
            heads = self._folder.heads()
            if cut.id in heads.sound or cut.id in heads.faults:
                raise BackupError(
                    UNUSABLE,
                    f"cannot make backup {cut.id}: there is one already",
                    "Make a new one: agentbox backup create",
                )
            tar = StagedTar(staged, cut.time)
            with repository_errors(MAKE):
                self._check_room(tar.total_bytes(), min_free)
            try:
                with repository_errors(MAKE):
                    file = self._write_archive(cut.id, tar, keys, rate)
                    head = new_head(
                        cut,
                        engine="archive",
                        archive=archive_name(cut.id, "none" if keys is None else "age"),
                        size=file.size,
                        sha256=file.sha256,
                        encrypt="none" if keys is None else "age",
                        recipients=len(keys or ()),
                        previous=heads.tip,
                        members=tar.members,
                    )
                    head_sha256 = self._folder.publish(head, _encoded(head))
            except BaseException:
                with repository_errors(MAKE):
                    self._folder.discard(cut.id)
                raise
        return Written(self._folder.get(cut.id), head_sha256)

    def list(self) -> Sequence[Snapshot]:
        return self._folder.heads().in_order

    def get(self, id: str) -> Snapshot:
        return self._folder.get(id)

    def verify(self, id: str) -> Sequence[Fault]:
        head = self._folder.get(id)
        with repository_errors(f"verify snapshot {head.id}"):
            return self._archive_faults(head)

    def verify_all(self) -> Sequence[Fault]:
        with repository_errors("verify the repository"):
            held = self._folder.is_held()
            heads = self._folder.heads()
            faults = list(self._head_faults(heads, held=held))
            for head in heads.in_order:
                faults += self._archive_faults(head)
        return faults

    def verify_heads(self) -> Sequence[Fault]:
        with repository_errors("verify the repository"):
            held = self._folder.is_held()
            return list(self._head_faults(self._folder.heads(), held=held))

    def _head_faults(self, heads: Heads, *, held: bool) -> Iterator[Fault]:
        yield from self._folder.chain_faults(heads)
        known = {head.archive for head in heads.sound.values()}
        for name in self._folder.archives() if self._folder.path.exists() else ():
            id = name.removesuffix(".age").removesuffix(".tar.zst")
            if name not in known and id not in heads.faults and not held:
                yield Fault(f"{id}.json", f"is missing beside {name}")

    @contextmanager
    def open(self, id: str, identities: Sequence[Any]) -> Iterator[Iterator[OpenedMember]]:
        head = self._folder.get(id)
        encrypted = head.encrypt == "age"
        if encrypted and not identities:
            raise wrong_identity(head.id, head.recipients, given=False)
        action = f"read snapshot {head.id}"
        try:
            with (
                repository_errors(action),
                open_file(self._folder.path / head.archive) as source,
                opened(source, identities if encrypted else None) as members,
            ):
                yield members
        except NoMatchingIdentity as error:
            raise wrong_identity(head.id, head.recipients, given=True) from error
        except ArchiveDamaged as error:
            raise damaged(head.archive, str(error)) from error

    def remove(self, id: str) -> None:
        head = self._folder.get(id)
        with self._folder.exclusively(PRUNE), repository_errors(PRUNE):
            self._folder.unpublish(self._folder.heads(), (head,))

    def prune(
        self,
        policy: Policy,
        *,
        verified: str,
        now: datetime | None = None,
        dry_run: bool = False,
    ) -> Sequence[Snapshot]:
        with self._folder.exclusively(PRUNE):
            heads = self._folder.heads()
            gone = removable(heads.in_order, policy, now=now or clock.now())
            if gone and not dry_run:
                check_verified(heads.in_order, verified)
                with repository_errors(PRUNE):
                    self._folder.unpublish(heads, gone)
        return gone

    def clean(self, keep: str = "") -> Sequence[str]:
        with self._folder.exclusively(MAKE), repository_errors("clean the repository"):
            return self._folder.clean(keep)

    def _check_room(self, size: int, min_free: int) -> None:
        free = shutil.disk_usage(self._folder.path).free
        if free < size + min_free:
            raise BackupError(
                NO_ROOM,
                f"cannot make a backup: it may need {size} bytes beside the {min_free} of "
                f"`backup.min_free`, and {free} are free where snapshots are",
                "Free room, or lower `backup.keep`.",
                needed=size + min_free,
                free=free,
            )

    def _write_archive(self, id: str, tar: StagedTar, keys: Any, rate: int) -> HashingFile:
        part = self._folder.part(id, "archive")
        descriptor = open_regular(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            take_owner(descriptor, self._folder.path)
            file = HashingFile(descriptor, rate)
            write_archive(tar.chunks(), file, keys)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return file

    def _archive_faults(self, head: Snapshot) -> Sequence[Fault]:
        try:
            with open_file(self._folder.path / head.archive) as file:
                size = os.fstat(file.fileno()).st_size
                if size != head.size:
                    return [Fault(head.archive, f"has {size} bytes, and {head.size} were written")]
                if hashlib.file_digest(file, "sha256").hexdigest() != head.sha256:
                    return [Fault(head.archive, "differs from its hash in the head")]
        except NotRegular as error:
            return [Fault(head.archive, error.why)]
        except FileNotFoundError:
            return [Fault(head.archive, "is missing")]
        return []


def _encoded(head: Snapshot) -> bytes:
    """Raises BackupError for a head that nobody could read again."""
    data = encode(head)
    if len(data) > MAX_HEAD:
        raise BackupError(
            UNUSABLE,
            f"cannot make backup {head.id}: it has {len(head.members)} files, and their list is "
            f"larger than {MAX_HEAD} bytes",
            "Take parts out of `backup.include`, such as the workspace.",
        )
    return data


def read_cut(staged: Path) -> Cut:
    """`cut.json` of a staging directory. Raises BackupError."""
    with repository_errors(f"read what was staged in {staged}"):
        try:
            document = atomic.read_json(staged / CUT_FILE)
            if document is None:
                raise FileNotFoundError(2, "no such file", str(staged / CUT_FILE))
            cut = Cut.from_wire(document)
        except (ValueError, AdapterError) as error:
            raise BackupError(
                UNUSABLE, f"cannot read {staged / CUT_FILE}: {error}", _STAGE_AGAIN
            ) from error
    if not ID.fullmatch(cut.id):
        raise BackupError(
            UNUSABLE, f"cannot make backup {cut.id!r}: that is not an id", _STAGE_AGAIN
        )
    return cut


def check_verified(in_order: Sequence[Snapshot], verified: str) -> None:
    """Raises BackupError unless `verified` is the newest snapshot."""
    newest = in_order[-1].id
    if verified != newest:
        raise BackupError(
            UNUSABLE,
            f"cannot prune: the newest snapshot {newest} was not verified",
            "Nothing was removed. Run `agentbox backup verify` first.",
        )
