"""Request bodies: CloudEvents, at most 100 and at most 1 MiB per request (V15)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from agentbox.adapters.events.cloudevents import cloud_event
from agentbox.contracts.events import Event

MAX_RECORDS = 100  # per request
MAX_BODY_BYTES = 1 << 20  # per body


@dataclass(frozen=True, slots=True)
class EncodedRecord:
    """A record and its CloudEvent as JSON."""

    event: Event
    text: bytes


def pack_batch(events: Sequence[Event], epoch: int = 0) -> tuple[EncodedRecord, ...]:
    """Return the first records of a journal with that epoch that fit in one request, at least
    one."""
    records: list[EncodedRecord] = []
    size = 2
    for event in events[:MAX_RECORDS]:
        document = cloud_event(event, epoch)
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        size += len(text) + 1
        if records and size > MAX_BODY_BYTES:
            break
        records.append(EncodedRecord(event, text))
    return tuple(records)


def encode_batch(records: Sequence[EncodedRecord]) -> bytes:
    """Return a JSON array of the records."""
    return b"[%b]" % b",".join(record.text for record in records)
