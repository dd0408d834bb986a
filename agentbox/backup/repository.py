"""What every engine of snapshots offers."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal, Protocol

from agentbox.backup.retention import Policy
from agentbox.contracts.backups import Snapshot


@dataclass(frozen=True, slots=True)
class Fault:
    """A damaged file: its name in the repository, or in the snapshot for faults of a member."""

    file: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}"


@dataclass(frozen=True, slots=True)
class OpenedMember:
    """One entry of an opened snapshot. `path` is relative, as bytes of the file system decode
    (`os.fsdecode`); `target` is what a link points to; `body` has a file's bytes, to be read
    before the next entry is asked for. Times are nanoseconds since 1970.
    """

    path: str
    kind: Literal["file", "folder", "link"]
    mode: int
    mtime_ns: int
    size: int = 0
    target: str = ""
    body: IO[bytes] | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A snapshot that was published, and the SHA-256 of its head for `backup.created`."""

    snapshot: Snapshot
    head_sha256: str


class Repository(Protocol):
    """A folder or an address with snapshots. Methods raise BackupError.

    `write` makes a snapshot of a staging directory, which it leaves in place; nothing of a failed
    one stays. `rate` is in bytes a second, 0 without a bound; `min_free` bytes stay free.
    """

    @property
    def folder(self) -> Path:
        """Where its heads are."""
        ...

    def write(self, staged: Path, *, min_free: int = 0, rate: int = 0) -> Written: ...

    def list(self) -> Sequence[Snapshot]:
        """Snapshots with a sound head, oldest first."""
        ...

    def get(self, id: str) -> Snapshot:
        """One snapshot; `latest` is the newest complete one. Raises BackupError (exit 1)."""
        ...

    def verify(self, id: str) -> Sequence[Fault]:
        """Compares the files of a snapshot with its head; needs no identity."""
        ...

    def verify_all(self) -> Sequence[Fault]:
        """The same for every snapshot, and for files that are missing or belong to none."""
        ...

    def verify_heads(self) -> Sequence[Fault]:
        """Damaged heads, and files that are missing or belong to none. While a writer publishes,
        what it does may look like a fault.
        """
        ...

    def open(
        self, id: str, identities: Sequence[Any]
    ) -> AbstractContextManager[Iterator[OpenedMember]]:
        """Reads a snapshot in the order of its paths. Raises BackupError: exit 2 when no identity
        fits, exit 1 when it is damaged, at the latest at the end of the iteration.
        """
        ...

    def remove(self, id: str) -> None: ...

    def prune(
        self,
        policy: Policy,
        *,
        verified: str,
        now: datetime | None = None,
        dry_run: bool = False,
    ) -> Sequence[Snapshot]:
        """Removes what `policy` does not keep; returns what it removed, or would. `verified` is
        the newest snapshot, just verified. Raises BackupError (exit 3) for another one, and while
        a head lies in the future.
        """
        ...

    def clean(self, keep: str = "") -> Sequence[str]:
        """Removes what a killed writer left, staged files among it, but not those staged for
        `keep`; returns the names.
        """
        ...
