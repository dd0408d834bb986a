"""The encoding of a record as a line, and the hash that chains it to the previous record.

A line is the RFC 8785 form of the record and a newline. The keys are sorted, so `hash`, `id` and
`prev_hash` are adjacent after `data`. No value after `data` is an object except `origin`, which is
between `id` and `prev_hash` in a record that another box delivered. So the hashed bytes are found
in the line itself.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import rfc8785

from agentbox.adapters.runtime.input_checks import check_json, check_size
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
class JournalLineHeader:
    """The chain position of a line, without its data. `key` is (source, id) as encoded in the line;
    for a record with an origin it is (box, seq there)."""

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
        """Whether the hash matches the bytes."""
        return self.hash == self.computed_hash


@dataclass(frozen=True, slots=True)
class UnchainedRecord:
    """A record without its chain position, each member encoded as RFC 8785."""

    event: dict[str, Any]
    members: dict[str, bytes]


def canonical_data(data: JsonObj) -> bytes:
    """Raises ValidationError for values that RFC 8785 cannot represent, ValueTooLarge beyond 64
    KiB."""
    if not isinstance(data, Mapping):
        raise invalid_value("/data", "must be an object")
    check_json(data, "/data")
    try:
        text: bytes = rfc8785.dumps(to_wire(data))
    except rfc8785.CanonicalizationError as error:
        raise invalid_value("/data", f"cannot be encoded as RFC 8785: {error}") from error
    check_size(len(text), "/data", MAX_DATA)
    return text


def encode_line(
    members: dict[str, bytes], seq: int, ts: datetime, prev_hash: str
) -> tuple[bytes, str]:
    """Return the line of a record and its hash. `members` are the other members, encoded as RFC
    8785."""
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


def parse_line(line: bytes) -> JournalLineHeader | None:
    """Parse the chain position of a line (without newline); None if its members are not those of a
    record."""
    start = line.rfind(_HASH_MEMBER)
    if start < 0 or not _HEAD.match(line):
        return None
    match = _TAIL.fullmatch(line, start)
    # the match was in the origin
    if match is None and (start := line.rfind(_HASH_MEMBER, 0, start)) >= 0:
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
    return JournalLineHeader(
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
    """Return the key of a delivered record."""
    return b"%d@%b" % (origin.seq, origin.box.encode())


def is_canonical(line: bytes) -> bool:
    """Return whether a line (without newline) is canonical RFC 8785 and has only the members of a
    record."""
    try:
        record = json.loads(line)
        return set(record) - {"origin"} == _MEMBERS and bool(rfc8785.dumps(record) == line)
    except (ValueError, RecursionError, rfc8785.CanonicalizationError):
        return False


def decode_event(line: bytes) -> Event:
    """Decode the record of an intact line."""
    data = json.loads(line)
    if "origin" in data:
        data["origin"] = decode_origin(data["origin"])
    return Event(**{**data, "ts": datetime.fromisoformat(data["ts"])})


def decode_origin(data: Mapping[str, Any]) -> Origin:
    """Decode an origin from JSON data."""
    return Origin(**{**data, "ts": datetime.fromisoformat(data["ts"])})


def origin_hash(event: Event) -> str:
    """Return the hash that a delivered record must have had in the journal of its box."""
    assert event.origin is not None, "only delivered records have one"
    origin, wire = event.origin, event.to_wire()
    body = {name: wire[name] for name in _MEMBERS - {"hash", "prev_hash"}}
    body |= {"seq": origin.seq, "ts": wire_time(origin.ts)}
    return hashlib.sha256(origin.prev_hash.encode() + rfc8785.dumps(body)).hexdigest()
