"""The files of a journal directory: segments, checkpoints and seals, and the lookup of records."""

import json
import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from agentbox.adapters.events.journal import chain
from agentbox.contracts.events import GENESIS
from agentbox.core.canonical import canonical_json, file_sha256
from agentbox.core.slot_errors import IntegrityError

CHECKPOINT_INTERVAL = 1000  # records between two checkpoints
SEALED = "journal.segment.sealed"
APPEND_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
ANCHOR = "anchor.json"
_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})\.(\d{4,})\.jsonl")


@dataclass(slots=True)
class JournalSegment:
    """One file of records. `offsets[n]` is the offset of record `first_seq + n *
    CHECKPOINT_INTERVAL`."""

    path: Path
    first_seq: int
    first_prev: str
    offsets: list[int] = field(default_factory=lambda: [0])

    @property
    def day(self) -> str:
        return self.path.name[:10]

    @property
    def index(self) -> Path:
        return self.path.with_suffix(".idx")

    @property
    def seal(self) -> Path:
        return self.path.with_suffix(".seal.json")

    @property
    def torn(self) -> Path:
        return self.path.with_suffix(".torn")

    def checkpoint(self, seq: int) -> tuple[int, int]:
        """Return the newest checkpoint at or before a record: (seq, offset)."""
        number = min((seq - self.first_seq) // CHECKPOINT_INTERVAL, len(self.offsets) - 1)
        return self.first_seq + number * CHECKPOINT_INTERVAL, self.offsets[number]


def segment_files(directory: Path) -> list[Path]:
    """Return the segments sorted by day and number."""
    numbered = [
        (match[1], int(match[2]), path)
        for path in directory.iterdir()
        if (match := _NAME.fullmatch(path.name))
    ]
    return [path for _day, _number, path in sorted(numbered)]


def current_files(directory: Path, first_seq: int) -> list[Path]:
    """Return the segments from the journal's first record on. An interrupted prune leaves older
    ones behind."""
    files = segment_files(directory)
    older = 0
    while first_seq and older < len(files) and _starts_before(files[older], first_seq):
        older += 1
    return files[older:]


def _starts_before(path: Path, first_seq: int) -> bool:
    with path.open("rb") as stream:
        parsed = chain.parse_line(stream.readline().removesuffix(b"\n"))
    return parsed is not None and parsed.is_intact and parsed.seq < first_seq


def next_segment_name(day: str, last: Path | None) -> str:
    """Return the name of the segment after `last`."""
    match = _NAME.fullmatch(last.name) if last is not None else None
    number = int(match[2]) + 1 if match is not None and match[1] == day else 1
    return f"{day}.{number:04d}.jsonl"


def read_lines(stream: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yield each line without its newline, and whether it had one."""
    for line in stream:
        complete = line.endswith(b"\n")
        yield (line[:-1] if complete else line), complete


def read_first_line(path: Path) -> chain.JournalLineHeader | None:
    """Parse the first record of a file; None without a complete line. Raises IntegrityError if the
    line is invalid."""
    with path.open("rb") as stream:
        line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    parsed = chain.parse_line(line[:-1])
    if parsed is None or not parsed.is_intact:
        raise damage_error(path, 1, None, "is not a valid record")
    return parsed


def damage_error(path: Path, line: int, seq: int | None, reason: str) -> IntegrityError:
    """Return the error for a damaged journal. `line` counts from 1."""
    return IntegrityError(
        f"the journal is damaged: {path.name}:{line} {reason}",
        hint="run `agentbox events verify` for the position, or restore a copy of the directory",
        segment=path.name,
        line=line,
        seq=seq,
    )


def read_anchor(directory: Path) -> tuple[int, str]:
    """Return the beginning of the journal, (first_seq, prev_hash), from `anchor.json` if it was
    pruned. Raises IntegrityError."""
    path = directory / ANCHOR
    try:
        data = json.loads(path.read_bytes())
        return int(data["first_seq"]), str(data["prev_hash"])
    except FileNotFoundError:
        return 0, GENESIS
    except (ValueError, KeyError, TypeError) as error:
        raise damage_error(path, 0, None, "is not a valid anchor") from error


def read_seal(path: Path) -> dict[str, Any] | None:
    """Read the seal of a segment; None without one. Raises IntegrityError if it is unreadable."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise damage_error(path, 1, None, "is not a valid seal") from error
    if not isinstance(data, dict) or not {
        "first_seq",
        "last_seq",
        "count",
        "hash",
        "sha256",
    } <= set(data):
        raise damage_error(path, 1, None, "is not a valid seal")
    return data


def write_seal(segment: JournalSegment, last_seq: int, last_hash: str) -> None:
    """Make a full segment read-only and write its seal. The segment must be synced."""
    segment.path.chmod(0o400)
    replace_file(
        segment.seal,
        encode_seal(
            segment.path.name, segment.first_seq, last_seq, last_hash, file_sha256(segment.path)
        ),
        mode=0o400,
    )


def encode_seal(name: str, first_seq: int, last_seq: int, last_hash: str, sha256: str) -> bytes:
    """Return the exact content of a segment's seal file; any other content is invalid."""
    seal = {
        "segment": name,
        "first_seq": first_seq,
        "last_seq": last_seq,
        "count": last_seq - first_seq + 1,
        "hash": last_hash,
        "sha256": sha256,
    }
    return canonical_json(seal) + b"\n"


def replace_file(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace a file atomically: a crash leaves the old or the new content."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(fd, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(fd)
    temporary.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def add_checkpoint(segment: JournalSegment, seq: int, offset: int) -> None:
    """Store a checkpoint and append it to the `.idx` file. The file is not synced and write errors
    are ignored, because opening derives it again."""
    if seq > segment.first_seq:
        segment.offsets.append(offset)
    with suppress(OSError), os.fdopen(os.open(segment.index, APPEND_FLAGS, 0o600), "wb") as stream:
        stream.write(canonical_json({"seq": seq, "offset": offset}) + b"\n")


def find_segment(segments: list[JournalSegment], seq: int) -> JournalSegment:
    """Return the segment of a record, existing or not."""
    return segments[max(0, bisect_right(segments, seq, key=lambda segment: segment.first_seq) - 1)]


def open_at(segment: JournalSegment, seq: int) -> BinaryIO:
    """Open the segment's file at a record."""
    checkpoint_seq, offset = segment.checkpoint(seq)
    stream = segment.path.open("rb")
    stream.seek(offset)
    for _ in range(seq - checkpoint_seq):
        stream.readline()
    return stream


def day_of(moment: datetime) -> str:
    """Return the UTC day that names a segment."""
    return moment.date().isoformat()
