"""Records as the bodies of requests: CloudEvents, at most 100 and at most 1 MiB at once (V15)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from agentbox.adapters.events.cloudevents import cloud_event
from agentbox.contracts.events import Event

MOST = 100  # records
LARGEST = 1 << 20  # bytes of a body


@dataclass(frozen=True, slots=True)
class Parcel:
    """A record, and its CloudEvent as JSON."""

    event: Event
    text: bytes


def packed(events: Sequence[Event]) -> tuple[Parcel, ...]:
    """As many of them, from the first on, as one request may hold; never none."""
    found: list[Parcel] = []
    size = 2
    for event in events[:MOST]:
        text = json.dumps(cloud_event(event), ensure_ascii=False, separators=(",", ":")).encode()
        size += len(text) + 1
        if found and size > LARGEST:
            break
        found.append(Parcel(event, text))
    return tuple(found)


def batch_of(parcels: Sequence[Parcel]) -> bytes:
    """A JSON array of them."""
    return b"[%b]" % b",".join(parcel.text for parcel in parcels)
