"""Checks a journal directory without a box and without configuration: every record, every link, every seal."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentbox.adapters.events.journal import chain
from agentbox.adapters.events.journal.segments import SEALED, kept_files, lines, read_anchor, read_seal, seal_of
from agentbox.contracts.events import GENESIS, VerifyError, VerifyReport
from agentbox.core.slot_errors import IntegrityError, NotFound

Stop = Callable[[], bool]
GAP = "mesh.gap"


@dataclass(slots=True)
class _Walk:
    """Where the check stands: the last record seen and its hash."""

    seq: int
    hash: str
    ts: str = ""
    first_seq: int = -1
    anchor: tuple[int, str] | None = None
    anchored: bool = False
    boxes: dict[str, tuple[int, str]] = field(
        default_factory=dict
    )  # the last record seen of each box that delivers here
    partial: bool = False  # there are records before the first one seen
    gap: Any = None  # data of the record before, where that was `mesh.gap`


class _Broken(Exception):
    def __init__(self, error: VerifyError) -> None:
        super().__init__(error.reason)
        self.error = error


def verify(
    directory: Path,
    *,
    anchor: tuple[int, str] | None = None,
    from_seq: int = 0,
    until: int | None = None,
    stop: Stop = lambda: False,
) -> VerifyReport:
    """The report on the segments of a directory. A torn last line is no damage: it was never acknowledged.

    `anchor` (seq, hash) is a record known from elsewhere; without it a cut tail cannot be told from a shorter journal.
    `from_seq` leaves out whole sealed segments before it. `until` ends the check after that record. Raises NotFound for
    a directory that is none.
    """
    if not directory.is_dir():
        raise NotFound(f"cannot verify {directory}: there is no such folder", resource="journal", id=str(directory))
    walk = _Walk(-1, GENESIS, anchor=anchor)
    try:
        first_seq, prev_hash = read_anchor(directory)
        walk.seq, walk.hash, walk.partial = first_seq - 1, prev_hash, first_seq > 0
        _missing(directory)
        files = kept_files(directory, first_seq)
        for number, path in enumerate(files):
            last = number == len(files) - 1
            if from_seq and not last and _skip(path, walk, from_seq):
                continue
            _segment(path, walk, last=last, until=until, stop=stop)
            if stop() or (until is not None and walk.seq >= until):
                break
        if not stop():
            _settle_anchor(directory, walk, first_seq)
    except _Broken as broken:
        return _report(walk, broken.error)
    except IntegrityError as error:
        found = error.members
        name, line = str(found["segment"]), int(found["line"] or 0)
        return _report(walk, VerifyError(file=name, line=line, seq=found["seq"], reason=error.message))
    return _report(walk, None)


def _report(walk: _Walk, error: VerifyError | None) -> VerifyReport:
    empty = walk.first_seq < 0
    return VerifyReport(
        ok=error is None, first_seq=-1 if empty else walk.first_seq, last_seq=-1 if empty else walk.seq,
        tail_hash=walk.hash, error=error,
    )  # fmt: skip


def _missing(directory: Path) -> None:
    """A seal whose segment is gone."""
    for seal in sorted(directory.glob("*.seal.json")):
        segment = seal.name.removesuffix(".seal.json") + ".jsonl"
        if not (directory / segment).exists():
            reason = "the segment is missing, its seal is there"
            raise _Broken(VerifyError(file=segment, line=0, seq=None, reason=reason))


def _skip(path: Path, walk: _Walk, from_seq: int) -> bool:
    seal = read_seal(path.with_suffix(".seal.json"))
    if seal is None or seal["last_seq"] >= from_seq:
        return False
    walk.seq, walk.hash, walk.partial = seal["last_seq"], seal["hash"], True
    return True


def _segment(path: Path, walk: _Walk, *, last: bool, until: int | None, stop: Stop) -> None:
    number, count, previous, kind, line = 0, 0, "", "", b""
    digest = hashlib.sha256()
    seal_path = path.with_suffix(".seal.json")
    seal = seal_path.read_bytes() if seal_path.exists() else None  # before the segment, which may be growing
    with path.open("rb") as stream:
        for number, (text, whole) in enumerate(lines(stream), 1):
            if not whole and last and seal is None:
                number -= 1
                break
            line = text
            digest.update(line + b"\n")
            previous = walk.hash
            kind = _record(path, number, line, walk, whole=whole)
            count += 1
            if stop() or (until is not None and walk.seq >= until):
                return
    if seal is None:
        if not last:
            raise _at(seal_path, 0, walk.seq, "the seal of the segment is missing")
        return
    if kind != SEALED:
        raise _at(path, number, walk.seq, "the segment is sealed, but its last record does not say so")
    first = walk.seq - count + 1
    if json.loads(line)["data"] != {"first_seq": first, "count": count - 1, "tail_hash": previous}:
        raise _at(path, number, walk.seq, "the sealing record does not agree with the segment")
    if seal != seal_of(path.name, first, walk.seq, walk.hash, digest.hexdigest()):
        raise _at(seal_path, 1, walk.seq, "the seal does not agree with the segment")


def _record(path: Path, number: int, line: bytes, walk: _Walk, *, whole: bool) -> str:
    """Checks one line and moves on; returns the type of its record."""
    expected = walk.seq + 1
    found = chain.scan(line)
    if found is None or not whole:
        raise _at(path, number, expected, "this is no whole record")
    if not found.sound:
        raise _at(path, number, expected, "the record was altered: its hash is not that of its bytes")
    if found.seq != expected:
        raise _at(path, number, expected, f"expected record {expected}, found {found.seq}")
    if found.prev_hash != walk.hash:
        raise _at(path, number, expected, "the record does not follow on the one before it")
    if found.ts < walk.ts:
        raise _at(path, number, expected, "its time is before that of the record before it")
    if found.day != path.name[:10]:
        raise _at(path, number, expected, "its day is not that of the segment")
    if not chain.canonical(line):
        raise _at(path, number, expected, "the record is not in the form of RFC 8785")
    walk.seq, walk.hash, walk.ts = found.seq, found.hash, found.ts
    _check_origin(path, number, line, found, walk)
    if walk.first_seq < 0:
        walk.first_seq = found.seq
    if walk.anchor is not None and walk.anchor[0] == found.seq:
        if walk.anchor[1] != found.hash:
            raise _at(path, number, expected, "its hash is not that of the anchor")
        walk.anchored = True
    return found.type


def _check_origin(path: Path, number: int, line: bytes, found: chain.Line, walk: _Walk) -> None:
    """A delivered record is what its own box wrote, and follows on the one before of that box, or on the word of a gap."""
    origin, gap = found.origin, walk.gap
    walk.gap = json.loads(line)["data"] if found.type == GAP and origin is None else None
    if origin is None:
        return
    if chain.hash_at_origin(chain.event_of(line)) != origin.hash:
        raise _at(path, number, found.seq, "its hash at its origin is not that of what it says")
    last = walk.boxes.get(origin.box, None if walk.partial else (-1, GENESIS))
    told = {"box": origin.box, "first_seq": last[0] + 1, "last_seq": origin.seq - 1} if last is not None else None
    follows = last is not None and (origin.seq, origin.prev_hash) == (last[0] + 1, last[1])
    if last is not None and not follows and (origin.seq <= last[0] + 1 or gap != told):
        raise _at(path, number, found.seq, "it does not follow on the last record of its origin")
    walk.boxes[origin.box] = origin.seq, origin.hash


def _settle_anchor(directory: Path, walk: _Walk, first_kept: int) -> None:
    if walk.anchor is None or walk.anchored:
        return
    cut = "the tail was cut" if walk.anchor[0] >= first_kept else f"the journal begins at record {first_kept}"
    reason = f"the record of the anchor is missing: {cut}"
    raise _Broken(VerifyError(file=directory.name, line=0, seq=walk.anchor[0], reason=reason))


def _at(path: Path, line: int, seq: int | None, reason: str) -> _Broken:
    return _Broken(VerifyError(file=path.name, line=line, seq=seq, reason=reason))
