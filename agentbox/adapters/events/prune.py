"""Removes the oldest sealed segments of a journal, and writes down where it begins from then on."""

from pathlib import Path

from agentbox.adapters.events.lock import WriterLock
from agentbox.adapters.events.segments import ANCHOR, first_of, read_seal, segment_files, sync_directory, write_whole
from agentbox.canonical import canonical_json


def prune(directory: Path, *, before_seq: int) -> int:
    """Removes each sealed segment whose records are all before that one; returns the first record that is kept.

    The journal must not be open: raises SlotUnavailable with the pid of its writer. A crash leaves a journal that
    verifies, since the anchor is written first and whole segments go oldest first.
    """
    lock = WriterLock(directory / ".lock")
    lock.take()
    try:
        return _prune(directory, before_seq)
    finally:
        lock.drop()


def _prune(directory: Path, before_seq: int) -> int:
    removed = []
    files = segment_files(directory)
    for path in files[:-1]:
        seal = read_seal(path.with_suffix(".seal.json"))
        if seal is None or seal["last_seq"] >= before_seq:
            break
        removed.append(path)
    if removed:
        first = first_of(files[len(removed)])
        assert first is not None, "a segment after a sealed one has a record"
        write_whole(directory / ANCHOR, canonical_json({"first_seq": first.seq, "prev_hash": first.prev_hash}) + b"\n")
    for path in removed:
        for part in (path, path.with_suffix(".idx"), path.with_suffix(".torn"), path.with_suffix(".seal.json")):
            part.unlink(missing_ok=True)
        sync_directory(directory)
    kept = first_of(files[len(removed)]) if files else None
    return 0 if kept is None else kept.seq
