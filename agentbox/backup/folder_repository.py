"""What repositories have in common that keep their heads in a folder: one writer, the list, and
what is pruned.
"""

import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Final

from agentbox.backup.errors import NO_ROOM, UNUSABLE, BackupError, repository_errors
from agentbox.backup.files import MAX_HEAD
from agentbox.backup.folder import Heads, RepositoryFolder
from agentbox.backup.heads import ID, encode
from agentbox.backup.retention import Policy, removable
from agentbox.contracts.backups import CUT_FILE, Cut, Snapshot
from agentbox.core import clock
from agentbox.core.files import atomic
from agentbox.core.slot_errors import AdapterError

MAKE: Final = "make a backup"
PRUNE: Final = "prune backups"
_STAGE_AGAIN: Final = "What was staged is not usable. Make a new one: agentbox backup create"


class FolderRepository:
    """Removing is what differs: `_unpublish`."""

    def __init__(self, folder: Path) -> None:
        self._folder = RepositoryFolder(folder)

    @property
    def folder(self) -> Path:
        return self._folder.path

    @property
    def staging(self) -> Path:
        """Where cuts are staged, a folder each."""
        return self._folder.staging

    def exclusively(self) -> AbstractContextManager[None]:
        return self._folder.exclusively(MAKE)

    def list(self) -> Sequence[Snapshot]:
        return self._folder.heads().in_order

    def get(self, id: str) -> Snapshot:
        return self._folder.get(id)

    def remove(self, id: str) -> None:
        head = self._folder.get(id)
        with self._folder.exclusively(PRUNE), repository_errors(PRUNE):
            self._unpublish(self._folder.heads(), (head,))

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
                    self._unpublish(heads, gone)
        return gone

    def clean(self, keep: str = "") -> Sequence[str]:
        with self._folder.exclusively(MAKE), repository_errors("clean the repository"):
            return self._folder.clean(keep)

    def _unpublish(self, heads: Heads, gone: Sequence[Snapshot]) -> None:
        """Removes heads and what they name; the caller holds the folder. Raises OSError,
        BackupError.
        """
        self._folder.unpublish(heads, gone)

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


def encoded(head: Snapshot) -> bytes:
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


def refuse_existing(cut: Cut, heads: Heads) -> None:
    """Raises BackupError if there is a head of that id."""
    if cut.id in heads.sound or cut.id in heads.faults:
        raise BackupError(
            UNUSABLE,
            f"cannot make backup {cut.id}: there is one already",
            "Make a new one: agentbox backup create",
        )
