"""What a journal offers to remove its oldest records while it is open."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from agentbox.core.frozen import frozen


@frozen
class SealedSegment:
    """A segment that never changes any more: the name of its file, its last record, and the SHA-256
    of its bytes.
    """

    name: str
    last_seq: int
    sha256: str


@runtime_checkable
class PrunableJournal(Protocol):
    """A journal in files of the box."""

    async def sealed_before(self, day: str) -> Sequence[SealedSegment]:
        """The oldest segments, of days before this one (YYYY-MM-DD), that nobody has yet to get.
        Raises IntegrityError, OSError.
        """
        ...

    async def remove_through(self, seq: int) -> int:
        """Removes sealed segments up to this record, unless a reader needs all files; returns the
        first record that is kept.
        """
        ...
