"""Every detectable forgery of a journal: the change, and where it must be found.

The attacked journal has three segments: records 0 to 40 and 41 to 81 are sealed, 82 to 121 are not.
All except seal records have their position in the segment as `n` in their data, and the subject
`s`.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rfc8785

from agentbox.adapters.events.journal.prune import prune
from agentbox.adapters.events.journal.segments import ANCHOR
from support.journal_edits import (
    Attack,
    Lines,
    edit_file,
    edit_line,
    read_lines,
    rechained,
    rehashed,
    remove,
    rename,
    replace,
    swap,
    write_lines,
)

FIRST, SECOND, THIRD = (f"2026-01-0{day}.0001.jsonl" for day in (1, 2, 3))
FIRST_SEAL, SECOND_SEAL = (f"2026-01-0{day}.0001.seal.json" for day in (1, 2))

Location = tuple[str, int, int | None]  # file, line, record


def reseal(directory: Path) -> None:
    """Changes a record of the first segment, chains all later ones again and seals the file."""
    *lines, last = read_lines(directory, FIRST)
    lines = rechained(lines, 5, data={"n": -1})
    tail = json.loads(lines[-1])["hash"]
    lines.append(
        rehashed(last, prev_hash=tail, data={**json.loads(last)["data"], "tail_hash": tail})
    )
    write_lines(directory, FIRST, lines)
    seal = json.loads((directory / FIRST_SEAL).read_bytes())
    seal |= {
        "hash": json.loads(lines[-1])["hash"],
        "sha256": hashlib.sha256(b"".join(lines)).hexdigest(),
    }
    write_lines(directory, FIRST_SEAL, [rfc8785.dumps(seal) + b"\n"])


def foreign_record(line: bytes) -> bytes:
    """Return a valid record of the same position in another journal."""
    return rehashed(line, prev_hash="ab" * 32)


def prune_and_edit_anchor(**changes: Any) -> Attack:
    """Return an attack that prunes correctly, then changes anchor.json."""

    def change(directory: Path) -> None:
        prune(directory, before_seq=50)
        anchor = json.loads((directory / ANCHOR).read_bytes())
        write_lines(directory, ANCHOR, [json.dumps({**anchor, **changes}).encode()])

    return change


ATTACKS: Mapping[str, tuple[Attack, Location]] = {
    "edit of data": (edit_line(FIRST, 6, replace(b'"n":5', b'"n":6')), (FIRST, 6, 5)),
    "edit of a type": (
        edit_line(SECOND, 1, replace(b"test.thing", b"test.other")),
        (SECOND, 1, 41),
    ),
    "edit of a time": (
        edit_line(THIRD, 3, replace(b"T00:00:00.000Z", b"T00:00:00.001Z")),
        (THIRD, 3, 84),
    ),
    "edit of a number": (edit_line(THIRD, 3, replace(b'"seq":84', b'"seq":85')), (THIRD, 3, 84)),
    "edit of a hash": (edit_line(THIRD, 3, replace(b'"hash":"', b'"hash":"0')), (THIRD, 3, 84)),
    "edit of a link": (edit_line(THIRD, 3, foreign_record), (THIRD, 3, 84)),
    "edit, rehashed": (edit_line(THIRD, 3, lambda line: rehashed(line, data={})), (THIRD, 4, 85)),
    "edit, chained to the end of a sealed segment": (
        edit_file(FIRST, lambda lines: rechained(lines, 5, data={"n": -1})),
        (FIRST, 41, 40),
    ),
    "edit, chained and sealed": (reseal, (SECOND, 1, 41)),
    "another member before the hash": (
        edit_line(THIRD, 40, lambda line: rehashed(line, dog=1)),
        (THIRD, 40, 121),
    ),
    "another member": (edit_line(THIRD, 40, lambda line: rehashed(line, more=1)), (THIRD, 40, 121)),
    "a member gone": (edit_line(THIRD, 40, replace(b'"subject":"s",', b"")), (THIRD, 40, 121)),
    "another spelling": (edit_line(FIRST, 6, replace(b'"data":{', b'"data": {')), (FIRST, 6, 5)),
    "a name twice": (edit_line(FIRST, 6, replace(b'"n":5', b'"n":5,"n":5')), (FIRST, 6, 5)),
    "no UTF-8": (edit_line(FIRST, 6, replace(b'"n":5', b'"\xff":5')), (FIRST, 6, 5)),
    "a time before the last one": (
        edit_line(THIRD, 40, lambda line: rehashed(line, ts="2026-01-02T23:59:59.999Z")),
        (THIRD, 40, 121),
    ),
    "a time of another day": (
        edit_line(THIRD, 40, lambda line: rehashed(line, ts="2026-01-04T00:00:00.000Z")),
        (THIRD, 40, 121),
    ),
    "removal": (edit_file(SECOND, lambda lines: lines[:5] + lines[6:]), (SECOND, 6, 46)),
    "removal of the first record": (edit_file(FIRST, lambda lines: lines[1:]), (FIRST, 1, 0)),
    "removal of the sealing record": (edit_file(FIRST, lambda lines: lines[:-1]), (FIRST, 40, 39)),
    "removal of all records": (edit_file(SECOND, lambda _: []), (SECOND, 0, 40)),
    "insertion of a copy": (
        edit_file(SECOND, lambda lines: [*lines[:5], lines[4], *lines[5:]]),
        (SECOND, 6, 46),
    ),
    "insertion of a new record": (
        edit_file(
            THIRD,
            lambda lines: [
                *lines[:5],
                rehashed(lines[5], data={}, prev_hash=json.loads(lines[4])["hash"]),
                *lines[5:],
            ],
        ),
        (THIRD, 7, 88),
    ),
    "an empty line": (
        edit_file(SECOND, lambda lines: [*lines[:5], b"\n", *lines[5:]]),
        (SECOND, 6, 46),
    ),
    "reorder": (
        edit_file(SECOND, lambda lines: [*lines[:5], lines[6], lines[5], *lines[7:]]),
        (SECOND, 6, 46),
    ),
    "splice": (edit_line(THIRD, 10, foreign_record), (THIRD, 10, 91)),
    "splice of a whole tail": (
        edit_file(THIRD, lambda lines: [*lines[:9], *rechained(lines[9:], 0, prev_hash="ab" * 32)]),
        (THIRD, 10, 91),
    ),
    "two files swapped": (swap(FIRST, SECOND), (FIRST, 1, 0)),
    "a segment gone": (remove(SECOND), (SECOND, 0, None)),
    "a segment gone with its seal": (remove(SECOND, SECOND_SEAL), (THIRD, 1, 41)),
    "the first segment gone with its seal": (remove(FIRST, FIRST_SEAL), (SECOND, 1, 0)),
    "a segment twice": (
        lambda d: shutil.copy(d / SECOND, d / "2026-01-02.0002.jsonl"),
        ("2026-01-02.0002.jsonl", 1, 82),
    ),
    "a segment of another day": (
        rename(THIRD, "2026-01-04.0001.jsonl"),
        ("2026-01-04.0001.jsonl", 1, 82),
    ),
    "a segment renamed with its seal": (
        lambda d: [
            rename(SECOND, "2026-01-02.0002.jsonl")(d),
            rename(SECOND_SEAL, "2026-01-02.0002.seal.json")(d),
        ],
        ("2026-01-02.0002.seal.json", 1, 81),
    ),
    "a sealed segment cut": (
        edit_file(FIRST, lambda lines: [*lines[:-1], lines[-1][:50]]),
        (FIRST, 41, 40),
    ),
    "bytes after a seal": (edit_file(FIRST, lambda lines: [*lines, b"{"]), (FIRST, 42, 41)),
    "bytes after the last seal": (
        lambda d: [remove(THIRD)(d), edit_file(SECOND, lambda lines: [*lines, b"{"])(d)],
        (SECOND, 42, 82),
    ),
    "a seal gone": (remove(FIRST_SEAL), (FIRST_SEAL, 0, 40)),
    "a seal that is none": (edit_file(SECOND_SEAL, lambda _: [b"[]"]), (SECOND_SEAL, 1, 81)),
    "a seal with another digest": (
        edit_line(SECOND_SEAL, 1, replace(b'"sha256":"', b'"sha256":"0')),
        (SECOND_SEAL, 1, 81),
    ),
    "a seal with another count": (
        edit_line(SECOND_SEAL, 1, replace(b'"count":41', b'"count":42')),
        (SECOND_SEAL, 1, 81),
    ),
    "a seal with another name": (
        edit_line(SECOND_SEAL, 1, replace(b'"2026-01-02.', b'"2026-01-03.')),
        (SECOND_SEAL, 1, 81),
    ),
    "two seals swapped": (swap(FIRST_SEAL, SECOND_SEAL), (FIRST_SEAL, 1, 40)),
    "a seal for what is not sealed": (
        lambda d: shutil.copy(d / SECOND_SEAL, d / "2026-01-03.0001.seal.json"),
        (THIRD, 40, 121),
    ),
    "another beginning": (prune_and_edit_anchor(first_seq=42), (THIRD, 1, 42)),
    "another hash before the beginning": (
        prune_and_edit_anchor(prev_hash="ab" * 32),
        (SECOND, 1, 41),
    ),
    "an anchor that is none": (prune_and_edit_anchor(first_seq="x"), (ANCHOR, 0, None)),
    "the anchor gone": (lambda d: [prune_and_edit_anchor()(d), remove(ANCHOR)(d)], (SECOND, 1, 0)),
}


def renumbered(lines: Lines) -> Lines:
    """Return lines numbered and chained again from the second on."""
    result = lines[:1]
    for line in lines[1:]:
        previous = json.loads(result[-1])
        result.append(rehashed(line, seq=previous["seq"] + 1, prev_hash=previous["hash"]))
    return result


def edit_origin(index: int, **changes: Any) -> Attack:
    """Return an attack that changes the origin of a record and chains all later ones again. `index`
    counts from 0.
    """
    return edit_file(
        FIRST,
        lambda lines: rechained(
            lines, index, origin={**json.loads(lines[index])["origin"], **changes}
        ),
    )


def _remove_origin(lines: Lines) -> Lines:
    """Make a delivered record look like a local one."""
    record = json.loads(lines[3])
    del record["origin"]
    return renumbered([*lines[:3], rfc8785.dumps(record) + b"\n", *lines[4:]])


# A journal of one day: record 0 is local, 1 to 5 are 0 to 4 of the box `one`, 6 is the gap before
# its 7 and 8, which are 7 and 8 here too, 9 is local. Each forgery chains all later records again,
# or the chain alone would reveal it.
ORIGINS: Mapping[str, tuple[Attack, Location]] = {
    "edit of an origin": (
        edit_line(FIRST, 4, replace(b'"box":"one"', b'"box":"two"')),
        (FIRST, 4, 3),
    ),
    "another box": (edit_origin(3, box="two"), (FIRST, 4, 3)),
    "another number": (edit_origin(8, seq=9), (FIRST, 9, 8)),
    "another time": (edit_origin(3, ts="2025-01-01T00:00:00.000Z"), (FIRST, 4, 3)),
    "another hash": (edit_origin(8, hash="ab" * 32), (FIRST, 9, 8)),
    "another link": (edit_origin(3, prev_hash="ab" * 32), (FIRST, 4, 3)),
    "another member of it": (edit_origin(8, more=1), (FIRST, 9, 8)),
    "other words": (
        edit_file(FIRST, lambda lines: rechained(lines, 3, data={"n": 2, "said": "y"})),
        (FIRST, 4, 3),
    ),
    "another speaker": (
        edit_file(FIRST, lambda lines: rechained(lines, 8, source="urn:x:two")),
        (FIRST, 9, 8),
    ),
    "no origin": (edit_file(FIRST, _remove_origin), (FIRST, 5, 4)),
    "one left out": (
        edit_file(FIRST, lambda lines: renumbered([*lines[:3], *lines[4:]])),
        (FIRST, 4, 3),
    ),
    "one twice": (
        edit_file(FIRST, lambda lines: renumbered([*lines[:4], lines[3], *lines[4:]])),
        (FIRST, 5, 4),
    ),
    "two exchanged": (
        edit_file(FIRST, lambda lines: renumbered([*lines[:3], lines[4], lines[3], *lines[5:]])),
        (FIRST, 4, 3),
    ),
    "a gap left out": (
        edit_file(FIRST, lambda lines: renumbered([*lines[:6], *lines[7:]])),
        (FIRST, 7, 6),
    ),
    "another gap": (
        edit_file(
            FIRST,
            lambda lines: rechained(lines, 6, data={"box": "one", "first_seq": 5, "last_seq": 5}),
        ),
        (FIRST, 8, 7),
    ),
}


# Not detectable from the files alone, only with a record known from elsewhere.
TRUNCATIONS: Mapping[str, Attack] = {
    "records": edit_file(THIRD, lambda lines: lines[:-3]),
    "the last file": remove(THIRD),
    "all but the first": remove(SECOND, THIRD, SECOND_SEAL),
    "everything": remove(FIRST, SECOND, THIRD, FIRST_SEAL, SECOND_SEAL),
    "the last record rewritten": edit_line(THIRD, 40, lambda line: rehashed(line, data={})),
    "the last records rewritten": edit_file(THIRD, lambda lines: rechained(lines, 20, data={})),
}
