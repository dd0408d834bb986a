"""One record of the journal as a line, and the hash that chains it to the one before.

A line is the RFC 8785 form of the whole record and a newline. Its keys are sorted, so `hash`, `id` and `prev_hash`
stand side by side after `data`, and no value that follows `data` holds an object: what was hashed is found in the line's
own bytes.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import rfc8785

from agentbox.adapters.events.contract import MAX_DATA, Event
from agentbox.adapters.text import check_json, check_size
from agentbox.adapters.wire import JsonObj, refuse, to_wire
from agentbox.clock import to_wire as wire_time

_STRING = rb'"(?:[^"\\]|\\.)*"'
_MAYBE = rb"(?:null|" + _STRING + rb")"
_HEAD = re.compile(rb'\{"agent_id":' + _MAYBE + rb',"data":\{')
_TAIL = re.compile(
    rb',"hash":"(?P<hash>[0-9a-f]{64})"(?P<id>,"id":' + _STRING + rb'),"prev_hash":"(?P<prev>[0-9a-f]{64})"'
    rb',"seq":(?P<seq>\d{1,16}),"session_id":' + _MAYBE + rb',"source":(?P<source>' + _STRING + rb'),"subject":' + _MAYBE
    + rb',"trace_id":' + _MAYBE + rb',"ts":"(?P<ts>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)","type":(?P<type>' + _STRING + rb")\}"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """What a line says of its place in the chain, without its data. `key` is (source, id) as it stands in the line."""

    seq: int
    prev_hash: str
    hash: str
    day: str
    ts: str
    key: bytes
    type: str
    computed: str

    @property
    def sound(self) -> bool:
        """Whether the hash is that of the bytes."""
        return self.hash == self.computed


@dataclass(frozen=True, slots=True)
class Draft:
    """A record without its place: every member as RFC 8785, ready to be put between the others."""

    event: dict[str, Any]
    members: dict[str, bytes]


def canonical_data(data: JsonObj) -> bytes:
    """Raises ValidationError for what RFC 8785 cannot carry, ValueTooLarge beyond 64 KiB."""
    if not isinstance(data, Mapping):
        raise refuse("/data", "must be an object")
    check_json(data, "/data")
    try:
        text: bytes = rfc8785.dumps(to_wire(data))
    except rfc8785.CanonicalizationError as error:
        raise refuse("/data", f"cannot be carried by RFC 8785: {error}") from error
    check_size(len(text), "/data", MAX_DATA)
    return text


def link(members: dict[str, bytes], seq: int, ts: datetime, prev_hash: str) -> tuple[bytes, str]:
    """The line of a record at its place, and its hash. `members` has every other member as RFC 8785."""
    head = b'{"agent_id":%b,"data":%b' % (members["agent_id"], members["data"])
    name = b',"id":%b' % members["id"]
    rest = b',"seq":%d,"session_id":%b,"source":%b,"subject":%b,"trace_id":%b,"ts":"%b","type":%b}' % (
        seq, members["session_id"], members["source"], members["subject"], members["trace_id"],
        wire_time(ts).encode(), members["type"],
    )  # fmt: skip
    found = hashlib.sha256(prev_hash.encode() + head + name + rest).hexdigest()
    return b'%b,"hash":"%b"%b,"prev_hash":"%b"%b\n' % (head, found.encode(), name, prev_hash.encode(), rest), found


def scan(line: bytes) -> Line | None:
    """The place of a line (without its newline) in the chain; None when it has not exactly the members of a record."""
    start = line.rfind(b',"hash":"')
    found = _TAIL.fullmatch(line, start) if start >= 0 and _HEAD.match(line) else None
    if found is None:
        return None
    hashed = hashlib.sha256(found["prev"])
    hashed.update(line[:start])
    hashed.update(found["id"])
    hashed.update(line[found.end("prev") + 1 :])
    ts = found["ts"].decode("ascii", "replace")
    return Line(
        int(found["seq"]), found["prev"].decode(), found["hash"].decode(), ts[:10], ts,
        found["source"] + found["id"], found["type"][1:-1].decode("utf-8", "replace"), hashed.hexdigest(),
    )  # fmt: skip


def canonical(line: bytes) -> bool:
    """Whether a line (without its newline) is the RFC 8785 form of what it says."""
    try:
        return bool(rfc8785.dumps(json.loads(line)) == line)
    except (ValueError, RecursionError, rfc8785.CanonicalizationError):
        return False


def event_of(line: bytes) -> Event:
    """The record of a sound line."""
    data = json.loads(line)
    return Event(**{**data, "ts": datetime.fromisoformat(data["ts"])})
