"""[backup]: what `agentbox backup` stores, for whom, when, and for how long."""

from typing import Annotated, Final, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range, Unique
from agentbox.manifest.declarations.key import When, key
from agentbox.manifest.named_types import (
    Cron,
    Recipient,
    RemoteRepository,
    SshHostKey,
    StorageVariable,
)
from agentbox.manifest.types import Env, Size, VolumeSource

RESTIC: Final[When] = {".engine": "restic"}
ARCHIVE: Final[When] = {".engine": "archive"}
BackupPart = Literal[
    "beads",
    "pods",
    "memory",
    "events",
    "agents",
    "access",
    "workspace",
    "identities",
    "secrets",
]


@frozen
class BackupTable:
    """What `agentbox backup` stores. Manifest, lock and plan are always in a snapshot."""

    include: Annotated[tuple[BackupPart, ...], Unique()] = key(
        ("beads", "pods", "memory", "events", "agents", "access", "identities"),
        "live",
        doc="What goes into a snapshot. `secrets` includes the admin token.",
    )
    schedule: Cron = key(
        "", "live", doc="When a backup is made; a missed one is made at the next boot."
    )
    folder: VolumeSource = key(
        "backups", "recreate", doc="Where snapshots are: a volume, or a folder of the host."
    )
    engine: Literal["archive", "restic"] = key(
        "archive",
        "rebuild",
        doc="The form of the repository: one encrypted file per snapshot, or restic's, which "
        "stores what changed and can be remote.",
    )
    repository: RemoteRepository = key(
        "", "recreate", doc="Where restic stores, if not in `folder`.", when=RESTIC
    )
    password_env: Env = key(
        "",
        "recreate",
        doc="Variable of the repository's password: the box can read its old snapshots.",
        when=RESTIC,
    )
    ssh_key_env: Env = key(
        "", "recreate", doc="Variable of the private ssh key for a repository sftp:.", when=RESTIC
    )
    ssh_host_key: SshHostKey = key(
        "", "recreate", doc="Public key of the host of a repository sftp:.", when=RESTIC
    )
    credentials: Annotated[tuple[StorageVariable, ...], Unique()] = key(
        (),
        "recreate",
        doc="Variables with credentials of a repository s3: or rest:, such as "
        "AWS_SECRET_ACCESS_KEY.",
        when=RESTIC,
    )
    recipients: Annotated[tuple[Recipient, ...], Unique()] = key(
        (), "live", doc="Who can read a snapshot; the box itself cannot.", when=ARCHIVE
    )
    encrypt: Literal["age", "none"] = key(
        "age", "live", doc="How a snapshot is encrypted.", when=ARCHIVE
    )
    keep: Annotated[int, Range(1, 365)] = key(
        7,
        "live",
        doc="Newest snapshots that are kept; older ones go after a new one is verified.",
        unit="snapshots",
    )
    keep_daily: Annotated[int, Range(0, 365)] = key(
        7, "live", doc="Days of which the last snapshot is kept as well.", unit="days"
    )
    keep_weekly: Annotated[int, Range(0, 365)] = key(
        4, "live", doc="Weeks of which the last snapshot is kept as well.", unit="weeks"
    )
    keep_monthly: Annotated[int, Range(0, 365)] = key(
        6, "live", doc="Months of which the last snapshot is kept as well.", unit="months"
    )
    external: Literal["skip", "dump"] = key(
        "skip", "live", doc="Whether the tables of slots in PostgreSQL are in a snapshot."
    )
    min_free: Size = key(
        Size("1GiB"), "live", doc="Bytes that stay free where snapshots are; else none is made."
    )
    rate: Size = key(Size("64MiB"), "live", doc="Bytes a second that the archive is written with.")
    verify_percent: Annotated[int, Range(0, 100)] = key(
        5,
        "live",
        doc="Share of the repository that the box verifies a day, in turn; 0 for none.",
        unit="percent",
    )
    prune_journal: bool = key(
        False,
        "live",
        doc="Remove the oldest segments of the journal that lie in two verified snapshots.",
    )
    journal_days: Annotated[int, Range(1, 3650)] = key(
        90, "live", doc="How long such segments stay in the box all the same.", unit="days"
    )
