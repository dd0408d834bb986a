"""Records of backups: what a cut staged (`cut.json`), the head of a snapshot (`<id>.json`), and the
bodies of the routes.

A staging directory mirrors the volumes: `state/<path below the state folder>`, `branches/<path
below the branches folder>`, `workspace/<path>`, `external/<slot>/<table>.copy`, `box/` with
manifest, lock and plan, and `cut.json`. The members of a snapshot are these files.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Final, Literal, Protocol

from agentbox.contracts.arguments import Id
from agentbox.core.records.bounds import bounded_text
from agentbox.core.records.wire import Record, record

CUT_FILE: Final = "cut.json"
HEAD_FORMAT: Final = 1
TAG_PATTERN: Final = "^[a-z0-9][a-z0-9._-]{0,63}$|^$"
BackupState = Literal["cutting", "staging", "writing", "created", "failed"]


@record
class Cut(Record):
    """One moment of a box. `seq` is that of the record `backup.cut`, 0 with events off or down, and
    `journal_bytes` the length of the journal up to and with it. `epoch` is 0 until a journal was
    restored. `stores`: number of the last migration by path below the staging directory; `counts`:
    rows of each slot; `partial`: slots that were down, so that nothing of them is here; `changed`:
    files of agents that changed while they were read or are not here, since they cannot be read,
    and pods that were edited or removed by hand. Its names are those of `SnapshotMember`.
    """

    id: str
    time: datetime
    tag: str
    seq: int
    journal_bytes: int
    epoch: int
    box: str
    release: str
    plan_digest: str
    stores: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    partial: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@record
class SnapshotMember(Record):
    """One file of a snapshot: path below the staging directory, bytes, SHA-256 in hexadecimal. In
    the path a backslash is doubled, and a byte that is not UTF-8 is a backslash, x and two digits.
    """

    path: str
    size: int
    sha256: str


@record
class Snapshot(Record):
    """The head of a snapshot, `<id>.json` in JCS; without it a snapshot does not exist. `archive`
    is the name of the file beside it, `sha256` that of its bytes, `encrypt` how they are encrypted
    and `recipients` to how many keys. With the engine restic, `archive` is the id of restic's
    snapshot, `size` and `sha256` those of the tar in it, and its password reads it. `previous` is
    the SHA-256 of the head before it, "" for the first; `digest` that of this head without
    `digest`.
    """

    format: int = HEAD_FORMAT
    engine: Literal["archive", "restic"]
    id: str
    time: datetime
    tag: str
    seq: int
    epoch: int
    box: str
    release: str
    plan_digest: str
    encrypt: Literal["age", "none", "restic"]
    recipients: int
    archive: str
    size: int
    sha256: str
    previous: str
    partial: tuple[str, ...]
    changed: tuple[str, ...]
    stores: Mapping[str, int]
    counts: Mapping[str, int]
    members: tuple[SnapshotMember, ...]
    digest: str = ""


@record
class Backup(Record):
    """A backup as the box shows it: one that is being made, has failed, or is a snapshot of the
    repository. `size` is that of the archive, 0 until it is there; `verified_at` is the time of the
    last verification that found no fault, null for none; `faults` is what the last one found;
    `reason` is why it failed.
    """

    id: str
    time: datetime
    tag: str
    state: BackupState
    reason: str = ""
    size: int = 0
    partial: tuple[str, ...] = ()
    verified_at: datetime | None = None
    faults: tuple[str, ...] = ()
    head: Snapshot | None = None


@record
class Backups(Record):
    """All backups, newest first; `head` is null here. `next_at`: the next one of the schedule;
    `checked_at`: when the share of a day was verified last; `faults`: of heads, and of files that
    belong to no snapshot.
    """

    items: tuple[Backup, ...]
    next_at: datetime | None = None
    checked_at: datetime | None = None
    faults: tuple[str, ...] = ()


class BackupEndpoints(Protocol):
    """What the API serves for backups."""

    async def create(
        self, tag: Annotated[str, bounded_text(maximum=64, pattern=TAG_PATTERN)] = ""
    ) -> Backup: ...

    async def list_backups(self) -> Backups: ...

    async def get(self, id: Id) -> Backup: ...

    async def verify(self, id: Id) -> Backup: ...

    async def archive(self, id: Id) -> bytes: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (Backup, Backups, Snapshot, SnapshotMember)
}
