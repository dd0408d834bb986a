"""`ResticRepository`: what was staged goes into a repository of restic, its head into a folder."""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from agentbox.backup.archive.reading import tar_members
from agentbox.backup.archive.repository import MAKE, PRUNE, check_verified, read_cut
from agentbox.backup.archive.staged_tar import StagedTar
from agentbox.backup.archive.streams import ArchiveDamaged
from agentbox.backup.errors import (
    DAMAGED,
    ENGINE,
    UNUSABLE,
    BackupError,
    damaged,
    repository_errors,
)
from agentbox.backup.folder import RepositoryFolder
from agentbox.backup.heads import encode, new_head
from agentbox.backup.repository import Fault, OpenedMember, Written
from agentbox.backup.restic.command import Restic
from agentbox.backup.retention import Policy, removable
from agentbox.contracts.backups import Snapshot
from agentbox.core import clock

_FILE: Final = "the repository of restic"


class ResticRepository:
    """`folder` has the heads; `verify_percent` of the data is read by `verify`."""

    def __init__(self, folder: Path, restic: Restic, *, verify_percent: int = 5) -> None:
        self._folder, self._restic = RepositoryFolder(folder), restic
        self._verify_percent = verify_percent

    def exclusively(self) -> AbstractContextManager[None]:
        return self._folder.exclusively(MAKE)

    def initialise(self) -> None:
        """Makes the repository; it must not exist."""
        self._restic.run("make the repository", "init")

    def write(self, staged: Path, *, min_free: int = 0, rate: int = 0) -> Written:
        """`min_free` is not asked for: how much restic adds is known afterwards. Raises BackupError
        as the Protocol says; a snapshot of restic without a head is removed by `clean`.
        """
        cut = read_cut(staged)
        with self._folder.exclusively(MAKE):
            heads = self._folder.heads()
            if cut.id in heads.sound or cut.id in heads.faults:
                raise BackupError(UNUSABLE, f"cannot make backup {cut.id}: there is one already")
            tar = StagedTar(staged, cut.time)
            with repository_errors(MAKE):
                for _chunk in tar.chunks():  # hashes the members
                    pass
            size = self._back_up(staged, cut.id, cut.box, cut.time, rate)
            (made,) = self._restic.rows(MAKE, "snapshots", "--tag", cut.id, "--latest", "1")
            head = new_head(
                cut,
                engine="restic",
                archive=str(made["id"]),
                size=size,
                sha256="",
                encrypt="age",
                recipients=0,
                previous=heads.tip,
                members=tar.members,
            )
            with repository_errors(MAKE):
                head_sha256 = self._folder.publish(head, encode(head))
        return Written(self._folder.get(cut.id), head_sha256)

    def list(self) -> Sequence[Snapshot]:
        return self._folder.heads().in_order

    def get(self, id: str) -> Snapshot:
        return self._folder.get(id)

    def verify(self, id: str) -> Sequence[Fault]:
        head = self._folder.get(id)
        return (*self._missing((head,)), *self._check())

    def verify_all(self) -> Sequence[Fault]:
        with repository_errors("verify the repository"):
            heads = self._folder.heads()
            faults = list(self._folder.chain_faults(heads)) if self._folder.path.exists() else []
        return (*faults, *self._missing(heads.in_order), *self._check())

    @contextmanager
    def open(self, id: str, identities: Sequence[Any] = ()) -> Iterator[Iterator[OpenedMember]]:
        """The password opens it; identities are not needed. Times are whole seconds: restic's tar
        has no others.
        """
        head = self._folder.get(id)
        words = ("dump", "--archive", "tar", head.archive, "/")
        try:
            with self._restic.output(f"read snapshot {head.id}", *words) as stream:
                yield tar_members(stream)
        except ArchiveDamaged as error:
            raise damaged(head.archive, str(error)) from error

    def remove(self, id: str) -> None:
        head = self._folder.get(id)
        with self._folder.exclusively(PRUNE):
            self._remove((head,))

    def prune(
        self,
        policy: Policy,
        *,
        verified: str,
        now: datetime | None = None,
        dry_run: bool = False,
    ) -> Sequence[Snapshot]:
        with self._folder.exclusively(PRUNE):
            in_order = self._folder.heads().in_order
            gone = removable(in_order, policy, now=now or clock.now())
            if gone and not dry_run:
                check_verified(in_order, verified)
                self._remove(gone)
        return gone

    def clean(self, keep: str = "") -> Sequence[str]:
        with self._folder.exclusively(MAKE):
            with repository_errors("clean the repository"):
                names = self._folder.clean(keep)
            self._restic.run("clean the repository", "unlock")
            known = {head.archive for head in self._folder.heads().sound.values()}
            lost = [id for id in self._snapshots() if id not in known]
            if lost:
                self._restic.run("clean the repository", "forget", *lost)
        return (*names, *lost)

    def _back_up(self, staged: Path, id: str, box: str, at: datetime, rate: int) -> int:
        """The bytes that it added."""
        moment = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        limit = ("--limit-upload", str(max(1, rate >> 10))) if rate else ()
        words = ("--host", box, "--tag", id, "--time", moment, *limit, ".")
        printed = self._restic.run(MAKE, "--json", "backup", *words, cwd=staged)
        for line in reversed(printed.splitlines()):
            row = json.loads(line)
            if row.get("message_type") == "summary":
                return int(row["data_added"])
        raise BackupError(ENGINE, f"cannot {MAKE}: restic printed no summary")

    def _snapshots(self) -> Sequence[str]:
        return [str(row["id"]) for row in self._restic.rows("list snapshots", "snapshots")]

    def _missing(self, heads: Sequence[Snapshot]) -> Sequence[Fault]:
        try:
            there = self._snapshots()
        except BackupError as error:
            if error.reason == DAMAGED:
                return [Fault(_FILE, error.hint)]
            raise
        return [
            Fault(f"{head.id}.json", f"restic has no snapshot {head.archive}")
            for head in heads
            if head.archive not in there
        ]

    def _check(self) -> Sequence[Fault]:
        subset = f"--read-data-subset={self._verify_percent}%"
        try:
            self._restic.run("verify the repository", "check", subset)
        except BackupError as error:
            if error.reason in (DAMAGED, ENGINE):
                return [Fault(_FILE, error.hint or error.message)]
            raise
        return []

    def _remove(self, gone: Sequence[Snapshot]) -> None:
        with repository_errors(PRUNE):
            self._folder.unpublish(self._folder.heads(), gone)
        self._restic.run(PRUNE, "forget", "--prune", *(head.archive for head in gone))
