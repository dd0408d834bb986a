"""One record of the journal as a line, and the hash that chains it to the one before.

A line is the RFC 8785 form of the whole record and a newline. Its keys are sorted, so `hash`, `id` and `prev_hash`
stand side by side after `data`, and no value that follows `data` holds an object but `origin`, which stands between `id` and
`prev_hash` in a record that another box delivered: what was hashed is found in the line's own bytes.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import rfc8785

from agentbox.adapters.runtime.checks import check_json, check_size
from agentbox.contracts.events import MAX_DATA, Event, Origin
from agentbox.core.clock import to_wire as wire_time
from agentbox.core.records.wire import JsonObj, invalid_value, to_wire

_STRING = rb'"(?:[^"\\]|\\.)*"'
_OPTIONAL_STRING = rb"(?:null|" + _STRING + rb")"
_TIME = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
_HASH = rb"[0-9a-f]{64}"
_ORIGIN = (
    rb',"origin":(?P<origin>\{"box":'
    + _STRING
    + rb',"hash":"'
    + _HASH
    + rb'","prev_hash":"'
    + _HASH
    + rb'","seq":\d{1,16},"ts":"'
    + _TIME
    + rb'"\})'
)
_HEAD = re.compile(rb'\{"agent_id":' + _OPTIONAL_STRING + rb',"data":\{')
_TAIL = re.compile(
    rb',"hash":"(?P<hash>[0-9a-f]{64})"(?P<id>,"id":'
    + _STRING
    + rb")(?:"
    + _ORIGIN
    + rb')?,"prev_hash":"(?P<prev>[0-9a-f]{64})"'
    rb',"seq":(?P<seq>\d{1,16}),"session_id":'
    + _OPTIONAL_STRING
    + rb',"source":(?P<source>'
    + _STRING
    + rb'),"subject":'
    + _OPTIONAL_STRING
    + rb',"trace_id":'
    + _OPTIONAL_STRING
    + rb',"ts":"(?P<ts>'
    + _TIME
    + rb')","type":(?P<type>'
    + _STRING
    + rb")\}"
)
_HASH_MEMBER = b',"hash":"'
_MEMBERS = frozenset(
    (
        "agent_id",
        "data",
        "hash",
        "id",
        "prev_hash",
        "seq",
        "session_id",
        "source",
        "subject",
        "trace_id",
        "ts",
        "type",
    )
)


@dataclass(frozen=True, slots=True)
class JournalLine:
    """What a line says of its place in the chain, without its data. `key` is (source, id) as it stands in the line, for a
    record with an origin (box, seq there)."""

    seq: int
    prev_hash: str
    hash: str
    day: str
    ts: str
    key: bytes
    type: str
    computed_hash: str
    origin: Origin | None = None

    @property
    def is_intact(self) -> bool:
        """Whether the hash is that of the bytes."""
        return self.hash == self.computed_hash


@dataclass(frozen=True, slots=True)
class PendingRecord:
    """A record without its place: every member as RFC 8785, ready to be put between the others."""

    event: dict[str, Any]
    members: dict[str, bytes]


def canonical_data(data: JsonObj) -> bytes:
    """Raises ValidationError for what RFC 8785 cannot carry, ValueTooLarge beyond 64 KiB."""
    if not isinstance(data, Mapping):
        raise invalid_value("/data", "must be an object")
    check_json(data, "/data")
    try:
        text: bytes = rfc8785.dumps(to_wire(data))
    except rfc8785.CanonicalizationError as error:
        raise invalid_value("/data", f"cannot be carried by RFC 8785: {error}") from error
    check_size(len(text), "/data", MAX_DATA)
    return text


def encode_line(
    members: dict[str, bytes], seq: int, ts: datetime, prev_hash: str
) -> tuple[bytes, str]:
    """The line of a record at its place, and its hash. `members` has every other member as RFC 8785."""
    head = b'{"agent_id":%b,"data":%b' % (members["agent_id"], members["data"])
    identity = b',"id":%b' % members["id"] + (
        b',"origin":%b' % members["origin"] if "origin" in members else b""
    )
    tail = (
        b',"seq":%d,"session_id":%b,"source":%b,"subject":%b,"trace_id":%b,"ts":"%b","type":%b}'
        % (
            seq,
            members["session_id"],
            members["source"],
            members["subject"],
            members["trace_id"],
            wire_time(ts).encode(),
            members["type"],
        )
    )
    digest = hashlib.sha256(prev_hash.encode() + head + identity + tail).hexdigest()
    return b'%b,"hash":"%b"%b,"prev_hash":"%b"%b\n' % (
        head,
        digest.encode(),
        identity,
        prev_hash.encode(),
        tail,
    ), digest


def parse_line(line: bytes) -> JournalLine | None:
    """The place of a line (without its newline) in the chain; None when it has not exactly the members of a record."""
    start = line.rfind(_HASH_MEMBER)
    if start < 0 or not _HEAD.match(line):
        return None
    match = _TAIL.fullmatch(line, start)
    if (
        match is None and (start := line.rfind(_HASH_MEMBER, 0, start)) >= 0
    ):  # the last one was that of the origin
        match = _TAIL.fullmatch(line, start)
    if match is None:
        return None
    digest = hashlib.sha256(match["prev"])
    digest.update(line[:start])
    digest.update(line[match.start("id") : match.start("prev") - len(b',"prev_hash":"')])
    digest.update(line[match.end("prev") + 1 :])
    ts = match["ts"].decode("ascii", "replace")
    origin = None if match["origin"] is None else decode_origin(json.loads(match["origin"]))
    key = match["source"] + match["id"] if origin is None else origin_key(origin)
    return JournalLine(
        int(match["seq"]),
        match["prev"].decode(),
        match["hash"].decode(),
        ts[:10],
        ts,
        key,
        match["type"][1:-1].decode("utf-8", "replace"),
        digest.hexdigest(),
        origin,
    )


def origin_key(origin: Origin) -> bytes:
    """The name under which a delivered record is known again."""
    return b"%d@%b" % (origin.seq, origin.box.encode())


def is_canonical(line: bytes) -> bool:
    """Whether a line (without its newline) is the RFC 8785 form of what it says, and says nothing more than a record does."""
    try:
        record = json.loads(line)
        return set(record) - {"origin"} == _MEMBERS and bool(rfc8785.dumps(record) == line)
    except (ValueError, RecursionError, rfc8785.CanonicalizationError):
        return False


def decode_event(line: bytes) -> Event:
    """The record of a sound line."""
    data = json.loads(line)
    if "origin" in data:
        data["origin"] = decode_origin(data["origin"])
    return Event(**{**data, "ts": datetime.fromisoformat(data["ts"])})


def decode_origin(data: Mapping[str, Any]) -> Origin:
    """From its JSON."""
    return Origin(**{**data, "ts": datetime.fromisoformat(data["ts"])})


def origin_hash(event: Event) -> str:
    """The hash that a delivered record must have had in the journal of its own box."""
    assert event.origin is not None, "only delivered records have one"
    origin, wire = event.origin, event.to_wire()
    body = {name: wire[name] for name in _MEMBERS - {"hash", "prev_hash"}}
    body |= {"seq": origin.seq, "ts": wire_time(origin.ts)}
    return hashlib.sha256(origin.prev_hash.encode() + rfc8785.dumps(body)).hexdigest()
