"""`ArchiveRepository`: a folder with one archive and one head for each snapshot."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentbox.backup.archive.keys import parse_recipients, wrong_identity
from agentbox.backup.archive.reading import opened
from agentbox.backup.archive.staged_tar import StagedTar
from agentbox.backup.archive.streams import (
    ArchiveDamaged,
    HashingFile,
    NoMatchingIdentity,
    write_archive,
)
from agentbox.backup.errors import UNUSABLE, BackupError, damaged, repository_errors
from agentbox.backup.files import NotRegular, open_file, open_regular, take_owner
from agentbox.backup.folder import Heads
from agentbox.backup.folder_repository import (
    MAKE,
    FolderRepository,
    encoded,
    read_cut,
    refuse_existing,
)
from agentbox.backup.heads import archive_name, new_head
from agentbox.backup.repository import Fault, OpenedMember, Written
from agentbox.contracts.backups import Snapshot
from agentbox.core.errors import ExitCode


class ArchiveRepository(FolderRepository):
    """`recipients` are public keys of age or ssh; None for archives that are not encrypted."""

    def __init__(self, folder: Path, recipients: Sequence[str] | None) -> None:
        super().__init__(folder)
        self._recipients = recipients

    def write(self, staged: Path, *, min_free: int = 0, rate: int = 0) -> Written:
        keys = None if self._recipients is None else parse_recipients(self._recipients)
        cut = read_cut(staged)
        with self._folder.exclusively(MAKE):
            heads = self._folder.heads()
            refuse_existing(cut, heads)
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
                    head_sha256 = self._folder.publish(head, encoded(head))
            except BaseException:
                with repository_errors(MAKE):
                    self._folder.discard(cut.id)
                raise
        return Written(self._folder.get(cut.id), head_sha256)

    def verify(self, id: str) -> Sequence[Fault]:
        head = self._own(self._folder.get(id), "verify")
        with repository_errors(f"verify snapshot {head.id}"):
            return self._archive_faults(head)

    def verify_all(self) -> Sequence[Fault]:
        with repository_errors("verify the repository"):
            held = self._folder.is_held()
            heads = self._folder.heads()
            faults = list(self._head_faults(heads, held=held))
            for head in heads.in_order:
                if head.engine == "restic":
                    continue
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
        head = self._own(self._folder.get(id), "read")
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

    @staticmethod
    def _own(head: Snapshot, verb: str) -> Snapshot:
        """Raises BackupError (exit 2) for a head of the other engine."""
        if head.engine == "restic":
            raise BackupError(
                UNUSABLE,
                f"cannot {verb} snapshot {head.id}: it is in a repository of restic",
                "Use the manifest of its box, which has the engine restic and names its password.",
                exit_code=ExitCode.USAGE,
            )
        return head

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
