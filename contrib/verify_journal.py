"""Checks an agentbox journal with nothing but Python's standard library: no agentbox code, no box, no configuration.

Segments are YYYY-MM-DD.NNNN.jsonl. A line is the RFC 8785 form of a record, whose hash is SHA-256(prev_hash || RFC 8785 of
the record without prev_hash and hash). A full segment ends with journal.segment.sealed and has a .seal.json.
Exit 0: sound. 1: damaged, with file, line and record of the first damage. 2: misused. Python 3.9 or newer.
"""

import argparse
import hashlib
import json
import re
import sys
from decimal import Decimal
from pathlib import Path

GENESIS, SEALED = "0" * 64, "journal.segment.sealed"
NAME = re.compile(r"(\d{4}-\d\d-\d\d)\.(\d{4,})\.jsonl")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
TEXT, MAYBE = (str,), (str, type(None))
MEMBERS = {
    "agent_id": MAYBE, "data": (dict,), "hash": TEXT, "id": TEXT, "prev_hash": TEXT, "seq": (int,), "session_id": MAYBE,
    "source": TEXT, "subject": MAYBE, "trace_id": MAYBE, "ts": TEXT, "type": TEXT,
}  # fmt: skip
ORIGIN = {
    "box": TEXT,
    "hash": TEXT,
    "prev_hash": TEXT,
    "seq": (int,),
    "ts": TEXT,
}  # of a record that another box delivered


class Damage(Exception):
    """(file, line, seq, reason) of the first thing that is wrong."""


def jcs(value):
    """RFC 8785 as text. Raises ValueError for what it cannot carry."""
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
        return "{" + ",".join(jcs(name) + ":" + jcs(item) for name, item in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(jcs, value)) + "]"
    return number(value) if type(value) in (int, float) else json.dumps(value, ensure_ascii=False)


def number(value):
    """A double as ECMAScript writes it."""
    if value - value != 0 or (type(value) is int and abs(value) > 2**53 - 1):
        raise ValueError("a number that RFC 8785 cannot carry")
    exact = Decimal(repr(value or 0)).normalize()
    return format(exact, "f" if value == 0 or 1e-6 <= abs(value) < 1e21 else "e")


def parse(line):
    """The record of a line, None when it is none, and its hash as it should be."""
    try:
        record = json.loads(line)
        origin = record.pop("origin", None) if isinstance(record, dict) else None
        whole = is_of(record, MEMBERS) and (origin is None or is_of(origin, ORIGIN))
        record = {**record, "origin": origin} if origin is not None else record
        if not whole or jcs(record).encode() != line:
            return None, ""
    except (ValueError, RecursionError):
        return None, ""
    return record, digest_of(record, record["prev_hash"])


def is_of(found, members):
    """Whether it is an object with exactly these members, each of its kind, and a time as journals write it."""
    known = isinstance(found, dict) and set(found) == set(members)
    return known and all(type(found[name]) in kinds for name, kinds in members.items()) and TIME.fullmatch(found["ts"])


def digest_of(record, prev):
    """The hash of a record that follows on `prev`."""
    hashed = jcs({name: item for name, item in record.items() if name not in ("hash", "prev_hash")})
    return hashlib.sha256((prev + hashed).encode()).hexdigest()


def check_origin(record, boxes, gap, partial):
    """What is wrong with where a delivered record comes from, "" for nothing. `gap` is the data of a mesh.gap before it."""
    origin = record["origin"]
    at_home = {name: item for name, item in record.items() if name != "origin"}
    if digest_of({**at_home, "seq": origin["seq"], "ts": origin["ts"]}, origin["prev_hash"]) != origin["hash"]:
        return "its hash at its origin is not that of what it says"
    seq, digest = boxes.get(origin["box"], (None, "") if partial else (-1, GENESIS))
    boxes[origin["box"]] = (origin["seq"], origin["hash"])
    if seq is None or (origin["seq"], origin["prev_hash"]) == (seq + 1, digest):
        return ""
    told = {"box": origin["box"], "first_seq": seq + 1, "last_seq": origin["seq"] - 1}
    return "" if origin["seq"] > seq + 1 and gap == told else "it does not follow on the last record of its origin"


def begin(path):
    """(first_seq, prev_hash) of a journal: genesis, or where pruning left it."""
    try:
        pruned = json.loads(path.read_bytes()) if path.exists() else {"first_seq": 0, "prev_hash": GENESIS}
        return int(pruned["first_seq"]), str(pruned["prev_hash"])
    except (ValueError, KeyError, TypeError):
        raise Damage(path.name, 0, None, "this is no anchor") from None


def segments(directory, first_seq):
    """The segments in order. What a pruning that was cut short left before `first_seq` does not count."""
    found = sorted((m[1], int(m[2]), path) for path in directory.iterdir() if (m := NAME.fullmatch(path.name)))
    paths = [row[2] for row in found]
    while first_seq and paths:
        with paths[0].open("rb") as stream:
            record, digest = parse(stream.readline().rstrip(b"\n"))
        if record is None or record["hash"] != digest or record["seq"] >= first_seq:
            break
        paths.pop(0)
    return paths


def check_segment(path, seq, prev, ts, last, anchor, boxes, partial):
    """(seq, hash, ts) of the segment's last record, which follows on (seq, prev, ts)."""
    seal_path = path.with_suffix(".seal.json")
    seal = seal_path.read_bytes() if seal_path.exists() else None
    count, before, record, whole_file, gap = 0, prev, None, hashlib.sha256(), None
    with path.open("rb") as stream:
        for line in stream:
            if not line.endswith(b"\n") and last and seal is None:
                break  # a torn tail: it was never acknowledged
            before, expected, count = prev, seq + 1, count + 1
            whole_file.update(line)
            record, digest = parse(line[:-1])
            if record is None or not line.endswith(b"\n") or record["hash"] != digest:
                raise Damage(path.name, count, expected, "this is no whole record, or it was altered")
            if (record["seq"], record["prev_hash"]) != (expected, prev):
                raise Damage(path.name, count, expected, "the record does not follow on the one before it")
            if record["ts"] < ts or record["ts"][:10] != path.name[:10]:
                raise Damage(path.name, count, expected, "its time is before the last one's, or of another day")
            if anchor and anchor[0] == expected and anchor[1] != digest:
                raise Damage(path.name, count, expected, "its hash is not that of the anchor")
            wrong = check_origin(record, boxes, gap, partial) if "origin" in record else ""
            if wrong:
                raise Damage(path.name, count, expected, wrong)
            gap = record["data"] if record["type"] == "mesh.gap" and "origin" not in record else None
            seq, prev, ts = expected, record["hash"], record["ts"]
    if seal is None and not last:
        raise Damage(seal_path.name, 0, seq, "the seal of the segment is missing")
    if seal is not None:
        said = {"first_seq": seq - count + 1, "count": count - 1, "tail_hash": before}
        if record is None or record["type"] != SEALED or record["data"] != said:
            raise Damage(path.name, count, seq, "the last record of a sealed segment does not seal it")
        said = {"segment": path.name, "first_seq": seq - count + 1, "last_seq": seq, "count": count, "hash": prev}
        if seal != (jcs({**said, "sha256": whole_file.hexdigest()}) + "\n").encode():
            raise Damage(seal_path.name, 1, seq, "the seal does not agree with the segment")
    return seq, prev, ts


def verify(directory, anchor=None):
    """The report: ok, first_seq, last_seq, tail_hash, error."""
    first_seq, seq, prev, ts, error = 0, -1, "", "", None
    try:
        first_seq, prev = begin(directory / "anchor.json")
        for path in sorted(directory.glob("*.seal.json")):
            if not (segment := path.with_name(path.name[: -len(".seal.json")] + ".jsonl")).exists():
                raise Damage(segment.name, 0, None, "the segment is missing, its seal is there")
        seq, paths = first_seq - 1, segments(directory, first_seq)
        boxes, partial = {}, first_seq > 0
        for path in paths:
            seq, prev, ts = check_segment(path, seq, prev, ts, path == paths[-1], anchor, boxes, partial)
        if anchor and not first_seq <= anchor[0] <= seq:
            raise Damage(directory.name, 0, anchor[0], "the record of the anchor is missing: cut off, or pruned")
    except Damage as damage:
        error = dict(zip(("file", "line", "seq", "reason"), damage.args))  # noqa: B905 - Python 3.9
    return {"ok": error is None, "first_seq": first_seq, "last_seq": seq, "tail_hash": prev, "error": error}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--anchor", metavar="SEQ:HASH", help="a record known from elsewhere: finds a cut tail")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    given = parser.parse_args()
    number_of, _, hash_of = (given.anchor or f"0:{GENESIS}").partition(":")
    if not given.directory.is_dir() or not number_of.isdecimal() or len(hash_of) != 64:
        parser.error("DIRECTORY must be a folder, and --anchor SEQ:HASH")
    report = verify(given.directory, (int(number_of), hash_of) if given.anchor else None)
    bad = "damaged: {file}:{line}, record {seq}: {reason}"
    said = bad if report["error"] else "sound: records {first_seq} to {last_seq}, tail {last_seq}:{tail_hash}"
    said = said.format(**(report["error"] or report))
    print(json.dumps(report) if given.json else said)
    sys.exit(0 if report["ok"] else 1)
