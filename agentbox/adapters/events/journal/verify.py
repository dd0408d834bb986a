"""Verifies a journal directory without a box or configuration: every record, hash link and seal."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentbox.adapters.events.journal import chain
from agentbox.adapters.events.journal.segments import (
    SEALED,
    current_files,
    encode_seal,
    read_anchor,
    read_lines,
    read_seal,
)
from agentbox.contracts.events import GENESIS, VerifyError, VerifyReport
from agentbox.core.slot_errors import IntegrityError, NotFound

Stop = Callable[[], bool]
GAP = "mesh.gap"


@dataclass(slots=True)
class _VerifyState:
    """The state of the verification: the last record and its hash."""

    seq: int
    hash: str
    ts: str = ""
    first_seq: int = -1
    anchor: tuple[int, str] | None = None
    anchored: bool = False
    # the last record of each box that delivers here
    boxes: dict[str, tuple[int, str]] = field(default_factory=dict)
    partial: bool = False  # there are records before the first verified one
    gap: Any = None  # data of the previous record if it was `mesh.gap`


class _VerifyFailed(Exception):
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
    """Return the report on a directory's segments. A torn last line is not damage: it was never
    acknowledged.

    `anchor` (seq, hash) is a record known from elsewhere; without it a truncated journal looks like
    a shorter one. `from_seq` skips complete sealed segments before it. `until` ends the check after
    that record. Raises NotFound if the directory does not exist.
    """
    if not directory.is_dir():
        raise NotFound(
            f"cannot verify {directory}: directory not found",
            resource="journal",
            id=str(directory),
        )
    state = _VerifyState(-1, GENESIS, anchor=anchor)
    try:
        first_seq, prev_hash = read_anchor(directory)
        state.seq, state.hash, state.partial = first_seq - 1, prev_hash, first_seq > 0
        _check_missing(directory)
        files = current_files(directory, first_seq)
        for number, path in enumerate(files):
            last = number == len(files) - 1
            if from_seq and not last and _skip_segment(path, state, from_seq):
                continue
            _verify_segment(path, state, last=last, until=until, stop=stop)
            if stop() or (until is not None and state.seq >= until):
                break
        if not stop():
            _check_anchor(directory, state, first_seq)
    except _VerifyFailed as failure:
        return _report(state, failure.error)
    except IntegrityError as error:
        members = error.members
        name, line = str(members["segment"]), int(members["line"] or 0)
        return _report(
            state, VerifyError(file=name, line=line, seq=members["seq"], reason=error.message)
        )
    return _report(state, None)


def _report(state: _VerifyState, error: VerifyError | None) -> VerifyReport:
    empty = state.first_seq < 0
    return VerifyReport(
        ok=error is None,
        first_seq=-1 if empty else state.first_seq,
        last_seq=-1 if empty else state.seq,
        tail_hash=state.hash,
        error=error,
    )


def _check_missing(directory: Path) -> None:
    """Raise for a seal without its segment."""
    for seal in sorted(directory.glob("*.seal.json")):
        segment = seal.name.removesuffix(".seal.json") + ".jsonl"
        if not (directory / segment).exists():
            reason = "the segment is missing, but its seal exists"
            raise _VerifyFailed(VerifyError(file=segment, line=0, seq=None, reason=reason))


def _skip_segment(path: Path, state: _VerifyState, from_seq: int) -> bool:
    seal = read_seal(path.with_suffix(".seal.json"))
    if seal is None or seal["last_seq"] >= from_seq:
        return False
    state.seq, state.hash, state.partial = seal["last_seq"], seal["hash"], True
    return True


def _verify_segment(
    path: Path, state: _VerifyState, *, last: bool, until: int | None, stop: Stop
) -> None:
    number, count, previous, kind, line = 0, 0, "", "", b""
    digest = hashlib.sha256()
    seal_path = path.with_suffix(".seal.json")
    # read before the segment, which may be growing
    seal = seal_path.read_bytes() if seal_path.exists() else None
    with path.open("rb") as stream:
        for number, (text, complete) in enumerate(read_lines(stream), 1):
            if not complete and last and seal is None:
                number -= 1
                break
            line = text
            digest.update(line + b"\n")
            previous = state.hash
            kind = _verify_record(path, number, line, state, complete=complete)
            count += 1
            if stop() or (until is not None and state.seq >= until):
                return
    if seal is None:
        if not last:
            raise _failure_at(seal_path, 0, state.seq, "the seal of the segment is missing")
        return
    if kind != SEALED:
        raise _failure_at(
            path, number, state.seq, "the segment is sealed, but its last record is not a seal"
        )
    first = state.seq - count + 1
    if json.loads(line)["data"] != {"first_seq": first, "count": count - 1, "tail_hash": previous}:
        raise _failure_at(path, number, state.seq, "the sealing record does not match the segment")
    if seal != encode_seal(path.name, first, state.seq, state.hash, digest.hexdigest()):
        raise _failure_at(seal_path, 1, state.seq, "the seal does not match the segment")


def _verify_record(
    path: Path, number: int, line: bytes, state: _VerifyState, *, complete: bool
) -> str:
    """Verify one line and advance; return the type of its record."""
    expected = state.seq + 1
    parsed = chain.parse_line(line)
    if parsed is None or not complete:
        raise _failure_at(path, number, expected, "the record is incomplete")
    if not parsed.is_intact:
        raise _failure_at(
            path, number, expected, "the record was altered: its hash does not match its bytes"
        )
    if parsed.seq != expected:
        raise _failure_at(path, number, expected, f"expected record {expected}, found {parsed.seq}")
    if parsed.prev_hash != state.hash:
        raise _failure_at(path, number, expected, "the record does not follow the previous one")
    if parsed.ts < state.ts:
        raise _failure_at(path, number, expected, "its time is before that of the previous record")
    if parsed.day != path.name[:10]:
        raise _failure_at(path, number, expected, "its day does not match the segment")
    if not chain.is_canonical(line):
        raise _failure_at(path, number, expected, "the record is not canonical RFC 8785")
    state.seq, state.hash, state.ts = parsed.seq, parsed.hash, parsed.ts
    _check_origin(path, number, line, parsed, state)
    if state.first_seq < 0:
        state.first_seq = parsed.seq
    if state.anchor is not None and state.anchor[0] == parsed.seq:
        if state.anchor[1] != parsed.hash:
            raise _failure_at(path, number, expected, "its hash does not match the anchor")
        state.anchored = True
    return parsed.type


def _check_origin(
    path: Path, number: int, line: bytes, parsed: chain.JournalLineHeader, state: _VerifyState
) -> None:
    """A delivered record must match the hash of its box, and follow on the previous record of that
    box or on a gap record."""
    origin, gap = parsed.origin, state.gap
    state.gap = json.loads(line)["data"] if parsed.type == GAP and origin is None else None
    if origin is None:
        return
    if chain.origin_hash(chain.decode_event(line)) != origin.hash:
        raise _failure_at(path, number, parsed.seq, "its origin hash does not match its content")
    last = state.boxes.get(origin.box, None if state.partial else (-1, GENESIS))
    expected_gap = (
        {"box": origin.box, "first_seq": last[0] + 1, "last_seq": origin.seq - 1}
        if last is not None
        else None
    )
    follows = last is not None and (origin.seq, origin.prev_hash) == (last[0] + 1, last[1])
    if last is not None and not follows and (origin.seq <= last[0] + 1 or gap != expected_gap):
        raise _failure_at(
            path, number, parsed.seq, "it does not follow the last record of its origin"
        )
    state.boxes[origin.box] = origin.seq, origin.hash


def _check_anchor(directory: Path, state: _VerifyState, first_seq: int) -> None:
    if state.anchor is None or state.anchored:
        return
    detail = (
        "the tail was truncated"
        if state.anchor[0] >= first_seq
        else f"the journal begins at record {first_seq}"
    )
    reason = f"the record of the anchor is missing: {detail}"
    raise _VerifyFailed(
        VerifyError(file=directory.name, line=0, seq=state.anchor[0], reason=reason)
    )


def _failure_at(path: Path, line: int, seq: int | None, reason: str) -> _VerifyFailed:
    return _VerifyFailed(VerifyError(file=path.name, line=line, seq=seq, reason=reason))
