"""Opening a journal: checks the newest records, cuts a torn last line, and loads the last ids."""

import hashlib
import json
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentbox.adapters.events.journal import chain
from agentbox.adapters.events.journal.foreign_records import OriginHead, load_origin_heads
from agentbox.adapters.events.journal.segments import (
    CHECKPOINT_INTERVAL,
    SEALED,
    JournalSegment,
    current_files,
    damage_error,
    find_segment,
    open_at,
    read_anchor,
    read_first_line,
    read_lines,
    read_seal,
    replace_file,
    sync_directory,
    write_seal,
)
from agentbox.adapters.events.journal.verify import verify
from agentbox.contracts.events import GENESIS
from agentbox.core.canonical import canonical_json
from agentbox.core.storage.store_record import StoreRecord

MAX_KEYS = 100_000  # records whose (source, id) is cached
DAMAGE_FILE = "damage.json"  # position of damage found by a background check


@dataclass(slots=True)
class JournalState:
    """The state of a journal directory. `head` is (-1, 64 zeros) if it is empty; `active` is the
    segment to append to."""

    directory: Path
    first_seq: int
    segments: list[JournalSegment] = field(default_factory=list)
    head: tuple[int, str] = (-1, GENESIS)
    last_ts: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    active: JournalSegment | None = None
    size: int = 0  # bytes of all segments
    checked_from: int = 0  # records before it are not checked yet
    keys: deque[tuple[bytes, int]] = field(default_factory=lambda: deque(maxlen=MAX_KEYS))
    torn: tuple[str, int, str] | None = None  # segment, bytes and sha256 of the cut tail
    # box -> the last record that it delivered
    origin_heads: dict[str, OriginHead] = field(default_factory=dict)


def key_number(key: bytes) -> int:
    """Return a 64-bit hash of (source, id); collisions are resolved with the record."""
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest())


def load(directory: Path, record: StoreRecord | None = None) -> JournalState:
    """Read the directory, cut a torn tail, and check the newest 100,000 records.

    Raises IntegrityError for any other damage and for records missing according to `record`;
    nothing is changed then.
    """
    first_seq, first_prev = read_anchor(directory)
    journal = JournalState(
        directory,
        first_seq,
        head=(first_seq - 1, first_prev),
        origin_heads=load_origin_heads(directory),
    )
    for path in current_files(directory, first_seq):
        _add_segment(journal, path)
    _recheck_damage(journal)
    expected = None if record is None else record.read("hash", "seq")
    end, sealed = _check_tail(journal) if journal.segments else (0, False)
    if record is not None and expected is not None and (loss := _find_loss(journal, expected)):
        raise record.loss_error("the journal", loss)
    if journal.segments:
        _repair_tail(journal, journal.segments[-1], end, sealed=sealed)
    journal.size = sum(segment.path.stat().st_size for segment in journal.segments)
    return journal


def _add_segment(journal: JournalState, path: Path) -> None:
    """Append a segment after comparing its beginning with the end of the previous one."""
    first = read_first_line(path)
    previous = journal.segments[-1] if journal.segments else None
    seq, prev = journal.head
    if previous is not None:
        seal = read_seal(previous.seal)
        if seal is None or seal["first_seq"] != previous.first_seq:
            raise damage_error(previous.path, 0, None, "has no seal, but another segment follows")
        seq, prev = seal["last_seq"], seal["hash"]
    if first is not None and (first.seq, first.prev_hash) != (seq + 1, prev):
        raise damage_error(path, 1, first.seq, f"does not follow record {seq}")
    journal.segments.append(JournalSegment(path, seq + 1, prev))
    journal.head = seq, prev


def _find_loss(journal: JournalState, expected: Mapping[str, Any]) -> str:
    """Return which of the last known records are missing; "" if none."""
    seq, digest = expected["seq"], expected["hash"]
    if journal.head[0] < seq:
        return f"it ends at record {journal.head[0]}, but contained record {seq}"
    if seq < journal.first_seq or seq == journal.head[0]:
        return (
            ""
            if seq < journal.first_seq or journal.head[1] == digest
            else f"record {seq} has changed"
        )
    with open_at(find_segment(journal.segments, seq), seq) as stream:
        parsed = chain.parse_line(stream.readline().rstrip(b"\n"))
    return "" if parsed is not None and parsed.hash == digest else f"record {seq} has changed"


def _check_tail(journal: JournalState) -> tuple[int, bool]:
    """Return the end offset of the last complete line, and whether it seals its segment."""
    for segment in journal.segments:
        _load_index(segment)
    last = journal.segments[-1]
    newest = last.first_seq + (len(last.offsets) - 1) * CHECKPOINT_INTERVAL
    start = max(journal.segments[0].first_seq, newest - MAX_KEYS)
    start_segment = find_segment(journal.segments, start)
    journal.checked_from = start_segment.checkpoint(start)[0]
    end, sealed = 0, False
    for segment in journal.segments[journal.segments.index(start_segment) :]:
        end, sealed = _scan_segment(
            journal, segment, max(journal.checked_from, segment.first_seq), last=segment is last
        )
    return end, sealed


def _repair_tail(journal: JournalState, last: JournalSegment, end: int, *, sealed: bool) -> None:
    _cut_tail(journal, last, end)
    _repair_seal(journal, last, sealed=sealed)
    save_index(last)


def _scan_segment(
    journal: JournalState, segment: JournalSegment, seq: int, *, last: bool
) -> tuple[int, bool]:
    """Check a segment from a checkpoint on and apply its records to the state.

    Returns the end offset of its last complete line, and whether that line seals the segment.
    """
    expected, offset = segment.checkpoint(seq)
    prev = None if offset else segment.first_prev
    line = b""
    with segment.path.open("rb") as stream:
        stream.seek(offset)
        for text, complete in read_lines(stream):
            if not complete and last:
                break
            line = text
            parsed = _check_line(segment, line, expected, prev)
            prev = parsed.hash
            if (expected - segment.first_seq) // CHECKPOINT_INTERVAL == len(segment.offsets):
                segment.offsets.append(offset)
            journal.head = expected, prev
            expected, offset = expected + 1, offset + len(line) + 1
            journal.keys.append((parsed.key, parsed.seq))
            journal.last_ts = datetime.fromisoformat(parsed.ts)
            if (origin := parsed.origin) is not None and origin.seq > journal.origin_heads.get(
                origin.box, (-1, "")
            )[0]:
                journal.origin_heads[origin.box] = origin.seq, origin.hash
    return offset, line.endswith(b'"type":"%b"}' % SEALED.encode())


def _check_line(
    segment: JournalSegment, line: bytes, expected: int, prev: str | None
) -> chain.JournalLineHeader:
    parsed = chain.parse_line(line)
    number = expected - segment.first_seq + 1
    if parsed is None or not parsed.is_intact:
        raise damage_error(segment.path, number, expected, "is not a valid record")
    if parsed.seq != expected or prev not in (None, parsed.prev_hash):
        raise damage_error(segment.path, number, expected, "does not follow the previous record")
    return parsed


def _repair_seal(journal: JournalState, segment: JournalSegment, *, sealed: bool) -> None:
    """Write the missing seal of a full last segment, after a crash between record and seal."""
    if sealed and not segment.seal.exists():
        write_seal(segment, *journal.head)
    journal.active = None if sealed else segment


def _load_index(segment: JournalSegment) -> None:
    """Load the valid checkpoints of the `.idx` file in order; the rest is derived while reading."""
    try:
        rows = segment.index.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    size = segment.path.stat().st_size
    with segment.path.open("rb") as stream:
        for number, row in enumerate(rows[:-1]):
            try:
                offset = int(json.loads(row)["offset"])
            except (ValueError, KeyError, TypeError):
                return
            if number == 0:
                continue
            stream.seek(min(offset, size))
            parsed = chain.parse_line(stream.readline().rstrip(b"\n"))
            if (
                parsed is None
                or not parsed.is_intact
                or parsed.seq != segment.first_seq + number * CHECKPOINT_INTERVAL
            ):
                return
            segment.offsets.append(offset)


def save_index(segment: JournalSegment) -> None:
    """Rewrite the checkpoints if the file is incomplete."""
    rows = [
        canonical_json({"offset": o, "seq": segment.first_seq + n * CHECKPOINT_INTERVAL})
        for n, o in enumerate(segment.offsets)
    ]
    expected = b"".join(row + b"\n" for row in rows)
    if not segment.index.exists() or segment.index.read_bytes() != expected:
        replace_file(segment.index, expected)


def _cut_tail(journal: JournalState, segment: JournalSegment, end: int) -> None:
    """Cut the data after the last complete line and store it in `<segment>.torn`. No data may
    follow a seal."""
    with segment.path.open("rb") as stream:
        stream.seek(end)
        cut = stream.read()
    if not cut:
        return
    if segment.seal.exists():
        seq = journal.head[0] + 1
        raise damage_error(
            segment.path,
            seq - segment.first_seq + 1,
            seq,
            "follows the record that sealed the segment",
        )
    with segment.torn.open("ab") as torn:
        torn.write(cut)
        torn.flush()
        os.fsync(torn.fileno())
    with segment.path.open("r+b") as stream:
        stream.truncate(end)
        os.fsync(stream.fileno())
    sync_directory(journal.directory)
    journal.torn = segment.path.name, len(cut), hashlib.sha256(cut).hexdigest()


def _recheck_damage(journal: JournalState) -> None:
    """Raise recorded damage until the journal verifies again."""
    path = journal.directory / DAMAGE_FILE
    try:
        data = json.loads(path.read_bytes())
        segment, line, seq, reason = (
            str(data["file"]),
            int(data["line"]),
            data["seq"],
            str(data["reason"]),
        )
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError) as error:
        raise damage_error(path, 0, None, "cannot be read") from error
    if not verify(journal.directory).ok:
        raise damage_error(journal.directory / segment, line, seq, reason)
    path.unlink()


def record_damage(directory: Path, file: str, line: int, seq: int | None, reason: str) -> None:
    """Store damage found in the background for the next opening."""
    replace_file(
        directory / DAMAGE_FILE,
        canonical_json({"file": file, "line": line, "seq": seq, "reason": reason}) + b"\n",
    )
