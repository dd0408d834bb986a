"""The last record of the local journal, read without opening the slot: phase 0 reports how far the
last boot came.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.paths import Paths
from agentbox.plan.model import Plan

_TAIL = 1 << 20  # bytes; a record is at most 256 KiB (`EVENT_BYTES`)


@dataclass(frozen=True)
class JournalTail:
    """`seq` is None without a local journal; `torn` when the last line is incomplete."""

    seq: int | None = None
    torn: bool = False
    file: str = ""


def last_record(paths: Paths, plan: Plan) -> JournalTail:
    """The last record of the newest segment that has a complete one. Raises OSError."""
    if plan.slots["events"].use == "off":
        return JournalTail()
    torn = False
    for segment in sorted(paths.slot("events").glob("*.jsonl"), reverse=True):
        lines = _tail(segment).splitlines(keepends=True)
        torn = torn or bool(lines and not lines[-1].endswith(b"\n"))
        for line in reversed(lines):
            if (seq := _seq(line)) is not None:
                return JournalTail(seq, torn, segment.name)
    return JournalTail(None, torn)


def _tail(segment: Path) -> bytes:
    with segment.open("rb") as stream:
        stream.seek(max(0, segment.stat().st_size - _TAIL))
        return stream.read()


def _seq(line: bytes) -> int | None:
    if not line.endswith(b"\n"):
        return None
    try:
        return int(json.loads(line)["seq"])
    except (ValueError, KeyError, TypeError):
        return None
