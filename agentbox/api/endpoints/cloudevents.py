"""CloudEvents 1.0 in structured JSON form, single or batch, parsed as events to append."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentbox.adapters.events.cloudevents import TYPE_PREFIX
from agentbox.contracts.events import MAX_NAME, MAX_TYPE, TYPE_PATTERN, Event, NewEvent
from agentbox.core.http.problems import invalid

MEDIA_TYPES = ("application/cloudevents+json", "application/cloudevents-batch+json")
_SEQ, _HASH = re.compile(r"0|[1-9]\d{0,14}"), re.compile(r"[0-9a-f]{64}")
_EPOCH = re.compile(r"[1-9]\d{0,14}")
_REQUIRED = ("id", "source", "specversion", "type")
_TEXT = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
_OPTIONAL = {"type": ["string", "null"], "maxLength": MAX_NAME}
SCHEMA = {
    "type": "object",
    "description": "CloudEvents 1.0, structured; other attributes are ignored.",
    "properties": {
        "id": _TEXT,
        "source": _TEXT,
        "specversion": {"const": "1.0"},
        "data": {"type": "object"},
        "type": {"type": "string", "maxLength": MAX_TYPE, "pattern": TYPE_PATTERN},
        "subject": _OPTIONAL,
        "agentboxagent": _OPTIONAL,
        "agentboxsession": _OPTIONAL,
        "agentboxtrace": _OPTIONAL,
    },
    "required": list(_REQUIRED),
}


def parse_events(document: Any) -> Sequence[NewEvent]:
    """Raises ValidationError with the pointer of the invalid part."""
    if isinstance(document, list):
        return tuple(_parse_event(row, f"/{index}") for index, row in enumerate(document))
    return (_parse_event(document, ""),)


@dataclass(frozen=True)
class DeliveredRecords:
    """Records of the journal of another box, all of one epoch of it."""

    records: tuple[Event, ...]
    epoch: int


def parse_delivered(document: Any) -> DeliveredRecords | None:
    """The journal records that another box delivers; None for other CloudEvents. Raises
    ValidationError for invalid ones.
    """
    is_batch = isinstance(document, list)
    rows = document if is_batch else [document]
    if not any(isinstance(row, Mapping) and "agentboxseq" in row for row in rows):
        return None
    pointers = [f"/{n}" if is_batch else "" for n in range(len(rows))]
    records = tuple(
        _parse_record(row, pointer) for row, pointer in zip(rows, pointers, strict=True)
    )
    epochs = [_parse_epoch(row, pointer) for row, pointer in zip(rows, pointers, strict=True)]
    for epoch, pointer in zip(epochs, pointers, strict=True):
        if epoch != epochs[0]:
            raise invalid(f"{pointer}/agentboxepoch", "must be the same in each record of a batch")
    return DeliveredRecords(records, epochs[0])


def _parse_epoch(row: Mapping[str, Any], pointer: str) -> int:
    epoch = row.get("agentboxepoch", "")
    if epoch == "":
        return 0
    if not isinstance(epoch, str) or _EPOCH.fullmatch(epoch) is None:
        raise invalid(f"{pointer}/agentboxepoch", "must be a decimal number above 0 in a string")
    return int(epoch)


def _parse_record(row: Any, pointer: str) -> Event:
    event = _parse_event(row, pointer)
    if "agentboxorigin" in row:
        raise invalid(
            f"{pointer}/agentboxorigin",
            "names a third box: records are accepted only from their own box",
        )
    if not event.type.startswith(TYPE_PREFIX):
        raise invalid(f"{pointer}/type", f"must start with {TYPE_PREFIX}")
    seq = row.get("agentboxseq")
    if not isinstance(seq, str) or _SEQ.fullmatch(seq) is None:
        raise invalid(f"{pointer}/agentboxseq", "must be a decimal number in a string")
    wire = {
        **event.to_wire(),
        "type": event.type.removeprefix(TYPE_PREFIX),
        "seq": int(seq),
        "ts": row.get("time"),
        "prev_hash": row.get("agentboxprev"),
        "hash": row.get("agentboxhash"),
    }
    for name, member in (("agentboxprev", "prev_hash"), ("agentboxhash", "hash")):
        if not isinstance(wire[member], str) or _HASH.fullmatch(wire[member]) is None:
            raise invalid(f"{pointer}/{name}", "must be 64 hex digits")
    return Event.from_wire(wire)


def _parse_event(row: Any, pointer: str) -> NewEvent:
    if not isinstance(row, Mapping):
        raise invalid(pointer, "must be an object")
    for name in _REQUIRED:
        if not isinstance(row.get(name), str) or not row[name]:
            raise invalid(f"{pointer}/{name}", "must be a non-empty string")
    if row["specversion"] != "1.0":
        raise invalid(f"{pointer}/specversion", "must be 1.0")
    data = row.get("data", {})
    if not isinstance(data, Mapping):
        raise invalid(f"{pointer}/data", "must be an object")
    wire = {
        "type": row["type"],
        "id": row["id"],
        "source": row["source"],
        "subject": row.get("subject"),
        "data": data,
    }
    extensions = {
        "agent_id": "agentboxagent",
        "session_id": "agentboxsession",
        "trace_id": "agentboxtrace",
    }
    return NewEvent.from_wire(
        {**wire, **{name: row.get(extension) for name, extension in extensions.items()}}
    )
