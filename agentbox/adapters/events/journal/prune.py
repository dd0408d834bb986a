"""Removes the oldest sealed segments of a journal and records where it begins."""

from collections.abc import Callable, Sequence
from pathlib import Path

from agentbox.adapters.events.journal.lock import WriterLock
from agentbox.adapters.events.journal.recovery import JournalState
from agentbox.adapters.events.journal.segments import (
    ANCHOR,
    current_files,
    damage_error,
    read_anchor,
    read_seal,
    replace_file,
    segment_files,
    sync_directory,
)
from agentbox.adapters.events.journal.verify import verify
from agentbox.adapters.runtime.journal_pruning import SealedSegment
from agentbox.core.canonical import canonical_json

IsOld = Callable[[Path, int], bool]


def prune(
    directory: Path,
    *,
    before_seq: int | None = None,
    before_day: str | None = None,
    dry_run: bool = False,
) -> tuple[int, list[str]]:
    """Remove each sealed segment whose records are all before a seq or a day (YYYY-MM-DD).

    Returns the first kept record and the names of the segments; `dry_run` removes nothing. Raises
    SlotUnavailable with the pid of the writer if the journal is open. A damaged journal is not
    changed, because its records may be evidence: raises IntegrityError. After a crash the journal
    still verifies: the anchor is written first, and segments before it are ignored.
    """

    def is_old(path: Path, last_seq: int) -> bool:
        return (before_seq is not None and last_seq < before_seq) or (
            before_day is not None and path.name[:10] < before_day
        )

    lock = WriterLock(directory / ".lock")
    lock.acquire()
    try:
        if (error := verify(directory).error) is not None:
            raise damage_error(directory / error.file, error.line, error.seq, error.reason)
        return _prune(directory, is_old, dry_run=dry_run)
    finally:
        lock.close()


def _prune(directory: Path, is_old: IsOld, *, dry_run: bool) -> tuple[int, list[str]]:
    first_seq, prev_hash = read_anchor(directory)
    files = current_files(directory, first_seq)
    # left behind by an interrupted prune
    removed = [path for path in segment_files(directory) if path not in files]
    for path in files[:-1]:
        seal = read_seal(path.with_suffix(".seal.json"))
        if seal is None or not is_old(path, seal["last_seq"]):
            break
        removed.append(path)
        first_seq, prev_hash = seal["last_seq"] + 1, seal["hash"]
    if removed and not dry_run:
        _write_anchor(directory, first_seq, prev_hash)
        _remove(directory, removed)
    return first_seq, [path.name for path in removed]


def sealed_before(journal: JournalState, day: str) -> list[SealedSegment]:
    """The oldest segments of an open journal, of days before this one; the one that is written is
    not among them. Raises IntegrityError, OSError.
    """
    found: list[SealedSegment] = []
    for segment in journal.segments[:-1]:
        seal = read_seal(segment.seal)
        if seal is None or segment.day >= day:
            break
        found.append(
            SealedSegment(name=segment.path.name, last_seq=seal["last_seq"], sha256=seal["sha256"])
        )
    return found


def remove_sealed(journal: JournalState, seq: int) -> None:
    """Remove the sealed segments of an open journal that end at or before this record. Called by
    the writer while no reader needs all files. A reader inside a removed segment gets
    CursorExpired. Raises OSError."""
    segments, count = journal.segments, 0
    while (
        count + 1 < len(segments)
        and segments[count + 1].first_seq <= seq + 1
        and segments[count].seal.exists()
    ):
        count += 1
    if not count:
        return
    first, removed = segments[count], [segment.path for segment in segments[:count]]
    size = sum(path.stat().st_size for path in removed)
    _write_anchor(journal.directory, first.first_seq, first.first_prev)
    journal.first_seq, journal.segments, journal.size = (
        first.first_seq,
        segments[count:],
        journal.size - size,
    )
    _remove(journal.directory, removed)


def _write_anchor(directory: Path, first_seq: int, prev_hash: str) -> None:
    replace_file(
        directory / ANCHOR, canonical_json({"first_seq": first_seq, "prev_hash": prev_hash}) + b"\n"
    )


def _remove(directory: Path, segments: Sequence[Path]) -> None:
    for path in segments:  # the segment last: a seal without its segment counts as damage
        for file in (
            path.with_suffix(".seal.json"),
            path.with_suffix(".idx"),
            path.with_suffix(".torn"),
            path,
        ):
            file.unlink(missing_ok=True)
        sync_directory(directory)
