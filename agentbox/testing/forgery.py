"""Every way to forge a journal that its own files give away: what is done, and where it must be found.

The journal under attack has three segments: records 0 to 40 and 41 to 81 are sealed, 82 to 121 are not. Each of the others
has the number of its place in the segment as `n` in its data, and the subject `s`.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import rfc8785

from agentbox.adapters.events.journal.prune import prune
from agentbox.adapters.events.journal.segments import ANCHOR

ONE, TWO, THREE = (f"2026-01-0{day}.0001.jsonl" for day in (1, 2, 3))
SEAL_ONE, SEAL_TWO = (f"2026-01-0{day}.0001.seal.json" for day in (1, 2))

Attack = Callable[[Path], Any]
Lines = list[bytes]
Place = tuple[str, int, int | None]  # file, line, record


def lines_of(directory: Path, name: str) -> Lines:
    """A file's lines, each with its newline."""
    return (directory / name).read_bytes().splitlines(keepends=True)


def put(directory: Path, name: str, lines: Lines) -> None:
    """Writes a file anew, whatever its mode."""
    if (directory / name).exists():
        (directory / name).chmod(0o600)
    (directory / name).write_bytes(b"".join(lines))


def rehashed(line: bytes, **changes: Any) -> bytes:
    """A record with other members, and the hash that goes with them."""
    record: dict[str, Any] = {**json.loads(line), **changes}
    body = {name: item for name, item in record.items() if name not in ("hash", "prev_hash")}
    record["hash"] = hashlib.sha256(record["prev_hash"].encode() + rfc8785.dumps(body)).hexdigest()
    text: bytes = rfc8785.dumps(record)
    return text + b"\n"


def rechained(lines: Lines, at: int, **changes: Any) -> Lines:
    """A record changed, and every one after it chained anew."""
    done = [*lines[:at], rehashed(lines[at], **changes)]
    for line in lines[at + 1 :]:
        done.append(rehashed(line, prev_hash=json.loads(done[-1])["hash"]))
    return done


def on(name: str, change: Callable[[Lines], Lines]) -> Attack:
    """Changes the lines of a file."""
    return lambda directory: put(directory, name, change(lines_of(directory, name)))


def on_line(name: str, number: int, change: Callable[[bytes], bytes]) -> Attack:
    """Changes one line; `number` counts from 1."""
    return on(name, lambda lines: [*lines[: number - 1], change(lines[number - 1]), *lines[number:]])


def replace(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """Other bytes for these, which must be there."""

    def change(line: bytes) -> bytes:
        assert old in line
        return line.replace(old, new)

    return change


def remove(*names: str) -> Attack:
    """Removes files."""

    def change(directory: Path) -> None:
        for name in names:
            (directory / name).unlink()

    return change


def rename(old: str, new: str) -> Attack:
    """Gives a file another name."""
    return lambda directory: (directory / old).rename(directory / new)


def swap(one: str, other: str) -> Attack:
    """Exchanges what two files hold."""

    def change(directory: Path) -> None:
        first, second = (directory / one).read_bytes(), (directory / other).read_bytes()
        put(directory, one, [second])
        put(directory, other, [first])

    return change


def seal_anew(directory: Path) -> None:
    """A record of the first segment changed, all after it chained, the file sealed as if it had always been so."""
    *lines, last = lines_of(directory, ONE)
    lines = rechained(lines, 5, data={"n": -1})
    tail = json.loads(lines[-1])["hash"]
    lines.append(rehashed(last, prev_hash=tail, data={**json.loads(last)["data"], "tail_hash": tail}))
    put(directory, ONE, lines)
    seal = json.loads((directory / SEAL_ONE).read_bytes())
    seal |= {"hash": json.loads(lines[-1])["hash"], "sha256": hashlib.sha256(b"".join(lines)).hexdigest()}
    put(directory, SEAL_ONE, [rfc8785.dumps(seal) + b"\n"])


def foreign(line: bytes) -> bytes:
    """A record of the same place in another journal: sound in itself."""
    return rehashed(line, prev_hash="ab" * 32)


def anchored(**changes: Any) -> Attack:
    """Pruned by the rules, then anchor.json changed."""

    def change(directory: Path) -> None:
        prune(directory, before_seq=50)
        anchor = json.loads((directory / ANCHOR).read_bytes())
        put(directory, ANCHOR, [json.dumps({**anchor, **changes}).encode()])

    return change


ATTACKS: Mapping[str, tuple[Attack, Place]] = {
    "edit of data": (on_line(ONE, 6, replace(b'"n":5', b'"n":6')), (ONE, 6, 5)),
    "edit of a type": (on_line(TWO, 1, replace(b"test.thing", b"test.other")), (TWO, 1, 41)),
    "edit of a time": (on_line(THREE, 3, replace(b"T00:00:00.000Z", b"T00:00:00.001Z")), (THREE, 3, 84)),
    "edit of a number": (on_line(THREE, 3, replace(b'"seq":84', b'"seq":85')), (THREE, 3, 84)),
    "edit of a hash": (on_line(THREE, 3, replace(b'"hash":"', b'"hash":"0')), (THREE, 3, 84)),
    "edit of a link": (on_line(THREE, 3, foreign), (THREE, 3, 84)),
    "edit, rehashed": (on_line(THREE, 3, lambda line: rehashed(line, data={})), (THREE, 4, 85)),
    "edit, chained to the end of a sealed segment": (
        on(ONE, lambda lines: rechained(lines, 5, data={"n": -1})), (ONE, 41, 40),
    ),
    "edit, chained and sealed": (seal_anew, (TWO, 1, 41)),
    "another member before the hash": (on_line(THREE, 40, lambda line: rehashed(line, dog=1)), (THREE, 40, 121)),
    "another member": (on_line(THREE, 40, lambda line: rehashed(line, more=1)), (THREE, 40, 121)),
    "a member gone": (on_line(THREE, 40, replace(b'"subject":"s",', b"")), (THREE, 40, 121)),
    "another spelling": (on_line(ONE, 6, replace(b'"data":{', b'"data": {')), (ONE, 6, 5)),
    "a name twice": (on_line(ONE, 6, replace(b'"n":5', b'"n":5,"n":5')), (ONE, 6, 5)),
    "no UTF-8": (on_line(ONE, 6, replace(b'"n":5', b'"\xff":5')), (ONE, 6, 5)),
    "a time before the last one": (
        on_line(THREE, 40, lambda line: rehashed(line, ts="2026-01-02T23:59:59.999Z")), (THREE, 40, 121),
    ),
    "a time of another day": (
        on_line(THREE, 40, lambda line: rehashed(line, ts="2026-01-04T00:00:00.000Z")), (THREE, 40, 121),
    ),
    "removal": (on(TWO, lambda lines: lines[:5] + lines[6:]), (TWO, 6, 46)),
    "removal of the first record": (on(ONE, lambda lines: lines[1:]), (ONE, 1, 0)),
    "removal of the sealing record": (on(ONE, lambda lines: lines[:-1]), (ONE, 40, 39)),
    "removal of all records": (on(TWO, lambda _: []), (TWO, 0, 40)),
    "insertion of a copy": (on(TWO, lambda lines: [*lines[:5], lines[4], *lines[5:]]), (TWO, 6, 46)),
    "insertion of a new record": (
        on(THREE, lambda lines: [*lines[:5], rehashed(lines[5], data={}, prev_hash=json.loads(lines[4])["hash"]), *lines[5:]]),
        (THREE, 7, 88),
    ),
    "an empty line": (on(TWO, lambda lines: [*lines[:5], b"\n", *lines[5:]]), (TWO, 6, 46)),
    "reorder": (on(TWO, lambda lines: [*lines[:5], lines[6], lines[5], *lines[7:]]), (TWO, 6, 46)),
    "splice": (on_line(THREE, 10, foreign), (THREE, 10, 91)),
    "splice of a whole tail": (on(THREE, lambda lines: [*lines[:9], *rechained(lines[9:], 0, prev_hash="ab" * 32)]), (THREE, 10, 91)),
    "two files swapped": (swap(ONE, TWO), (ONE, 1, 0)),
    "a segment gone": (remove(TWO), (TWO, 0, None)),
    "a segment gone with its seal": (remove(TWO, SEAL_TWO), (THREE, 1, 41)),
    "the first segment gone with its seal": (remove(ONE, SEAL_ONE), (TWO, 1, 0)),
    "a segment twice": (lambda d: shutil.copy(d / TWO, d / "2026-01-02.0002.jsonl"), ("2026-01-02.0002.jsonl", 1, 82)),
    "a segment of another day": (rename(THREE, "2026-01-04.0001.jsonl"), ("2026-01-04.0001.jsonl", 1, 82)),
    "a segment renamed with its seal": (
        lambda d: [rename(TWO, "2026-01-02.0002.jsonl")(d), rename(SEAL_TWO, "2026-01-02.0002.seal.json")(d)],
        ("2026-01-02.0002.seal.json", 1, 81),
    ),
    "a sealed segment cut": (on(ONE, lambda lines: [*lines[:-1], lines[-1][:50]]), (ONE, 41, 40)),
    "bytes after a seal": (on(ONE, lambda lines: [*lines, b"{"]), (ONE, 42, 41)),
    "bytes after the last seal": (lambda d: [remove(THREE)(d), on(TWO, lambda lines: [*lines, b"{"])(d)], (TWO, 42, 82)),
    "a seal gone": (remove(SEAL_ONE), (SEAL_ONE, 0, 40)),
    "a seal that is none": (on(SEAL_TWO, lambda _: [b"[]"]), (SEAL_TWO, 1, 81)),
    "a seal with another digest": (on_line(SEAL_TWO, 1, replace(b'"sha256":"', b'"sha256":"0')), (SEAL_TWO, 1, 81)),
    "a seal with another count": (on_line(SEAL_TWO, 1, replace(b'"count":41', b'"count":42')), (SEAL_TWO, 1, 81)),
    "a seal with another name": (on_line(SEAL_TWO, 1, replace(b'"2026-01-02.', b'"2026-01-03.')), (SEAL_TWO, 1, 81)),
    "two seals swapped": (swap(SEAL_ONE, SEAL_TWO), (SEAL_ONE, 1, 40)),
    "a seal for what is not sealed": (lambda d: shutil.copy(d / SEAL_TWO, d / "2026-01-03.0001.seal.json"), (THREE, 40, 121)),
    "another beginning": (anchored(first_seq=42), (THREE, 1, 42)),
    "another hash before the beginning": (anchored(prev_hash="ab" * 32), (TWO, 1, 41)),
    "an anchor that is none": (anchored(first_seq="x"), (ANCHOR, 0, None)),
    "the anchor gone": (lambda d: [anchored()(d), remove(ANCHOR)(d)], (TWO, 1, 0)),
}  # fmt: skip


def renumbered(lines: Lines) -> Lines:
    """Numbered and chained anew from the second on, as if they had always stood so."""
    done = lines[:1]
    for line in lines[1:]:
        before = json.loads(done[-1])
        done.append(rehashed(line, seq=before["seq"] + 1, prev_hash=before["hash"]))
    return done


def of_origin(at: int, **changes: Any) -> Attack:
    """Other members in the origin of a record, and everything after it chained anew. `at` counts from 0."""
    return on(ONE, lambda lines: rechained(lines, at, origin={**json.loads(lines[at])["origin"], **changes}))


def _unnamed(lines: Lines) -> Lines:
    """A delivered record as if it were of this box."""
    record = json.loads(lines[3])
    del record["origin"]
    return renumbered([*lines[:3], rfc8785.dumps(record) + b"\n", *lines[4:]])


# On a journal of one day: record 0 is its own, 1 to 5 are 0 to 4 of the box `one`, 6 tells of the gap before its 7 and 8,
# which are 7 and 8 here too, 9 is its own. Each forgery chains all that follows anew, or the chain alone would tell.
ORIGINS: Mapping[str, tuple[Attack, Place]] = {
    "edit of an origin": (on_line(ONE, 4, replace(b'"box":"one"', b'"box":"two"')), (ONE, 4, 3)),
    "another box": (of_origin(3, box="two"), (ONE, 4, 3)),
    "another number": (of_origin(8, seq=9), (ONE, 9, 8)),
    "another time": (of_origin(3, ts="2025-01-01T00:00:00.000Z"), (ONE, 4, 3)),
    "another hash": (of_origin(8, hash="ab" * 32), (ONE, 9, 8)),
    "another link": (of_origin(3, prev_hash="ab" * 32), (ONE, 4, 3)),
    "another member of it": (of_origin(8, more=1), (ONE, 9, 8)),
    "other words": (on(ONE, lambda lines: rechained(lines, 3, data={"n": 2, "said": "y"})), (ONE, 4, 3)),
    "another speaker": (on(ONE, lambda lines: rechained(lines, 8, source="urn:x:two")), (ONE, 9, 8)),
    "no origin": (on(ONE, _unnamed), (ONE, 5, 4)),
    "one left out": (on(ONE, lambda lines: renumbered([*lines[:3], *lines[4:]])), (ONE, 4, 3)),
    "one twice": (on(ONE, lambda lines: renumbered([*lines[:4], lines[3], *lines[4:]])), (ONE, 5, 4)),
    "two exchanged": (on(ONE, lambda lines: renumbered([*lines[:3], lines[4], lines[3], *lines[5:]])), (ONE, 4, 3)),
    "a gap left out": (on(ONE, lambda lines: renumbered([*lines[:6], *lines[7:]])), (ONE, 7, 6)),
    "another gap": (
        on(ONE, lambda lines: rechained(lines, 6, data={"box": "one", "first_seq": 5, "last_seq": 5})), (ONE, 8, 7),
    ),
}  # fmt: skip


# What the files alone do not give away: it takes a record that is known from elsewhere.
CUTS: Mapping[str, Attack] = {
    "records": on(THREE, lambda lines: lines[:-3]),
    "the last file": remove(THREE),
    "all but the first": remove(TWO, THREE, SEAL_TWO),
    "everything": remove(ONE, TWO, THREE, SEAL_ONE, SEAL_TWO),
    "the last record rewritten": on_line(THREE, 40, lambda line: rehashed(line, data={})),
    "the last records rewritten": on(THREE, lambda lines: rechained(lines, 20, data={})),
}
