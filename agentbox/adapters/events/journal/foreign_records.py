"""Records of other boxes in this journal (V16): the new records of a delivery, and the last record
of each box."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import rfc8785

from agentbox.adapters.events.journal import chain
from agentbox.adapters.events.journal.drafts import draft_from_event
from agentbox.adapters.events.journal.segments import damage_error, replace_file
from agentbox.adapters.events.journal.verify import GAP
from agentbox.contracts.events import GENESIS, Event, Origin
from agentbox.core.canonical import canonical_json
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import AlteredDelivery, OriginConflict

FILE = "origins.json"
SAVE_INTERVAL = 1000  # records between two checkpoints; far fewer than opening reads again
OriginHead = tuple[int, str]  # seq and hash of the last known record of a box


def draft_from_delivery(event: Event, box: str, pointer: str) -> chain.UnchainedRecord:
    """Return a draft of a record that another box delivered. Raises ValidationError, or
    AlteredRecord if its hash does not match."""
    if event.origin is not None:
        raise invalid_value(
            f"{pointer}/origin", "is of a third box: only that box can deliver its records"
        )
    draft = draft_from_event(event, pointer)
    if chain.encode_line(draft.members, event.seq, event.ts, event.prev_hash)[1] != event.hash:
        raise AlteredDelivery(
            f"cannot accept record {event.seq}: its hash does not match its content",
            box=box,
            seq=event.seq,
        )
    origin = Origin(box=box, seq=event.seq, ts=event.ts, prev_hash=event.prev_hash, hash=event.hash)
    members = {**draft.members, "origin": rfc8785.dumps(origin.to_wire())}
    return chain.UnchainedRecord({**draft.event, "origin": origin}, members)


def new_drafts(
    drafts: Sequence[chain.UnchainedRecord],
    head: OriginHead | None,
    find_stored: Callable[[chain.UnchainedRecord], Event | None],
    create_self_draft: Callable[[str, dict[str, Any]], chain.UnchainedRecord],
) -> tuple[list[chain.UnchainedRecord], OriginHead | None]:
    """Return the drafts after the head of their box, each gap preceded by a gap record, and the new
    head.

    Raises OriginConflict if they belong to another journal than the stored records.
    """
    result: list[chain.UnchainedRecord] = []
    seq, digest = head or (-1, GENESIS)
    for draft in drafts:
        origin: Origin = draft.event["origin"]
        if origin.seq <= seq:
            stored = find_stored(draft)
            if (
                stored is not None
                and stored.origin is not None
                and stored.origin.hash != origin.hash
            ):
                raise _conflict(origin)
            continue
        if origin.seq > seq + 1:
            result.append(
                create_self_draft(
                    GAP, {"box": origin.box, "first_seq": seq + 1, "last_seq": origin.seq - 1}
                )
            )
        elif origin.prev_hash != digest:
            raise _conflict(origin)
        result.append(draft)
        seq, digest = origin.seq, origin.hash
    return result, (seq, digest) if seq >= 0 else None


def _conflict(origin: Origin) -> OriginConflict:
    return OriginConflict(
        (
            f"cannot accept record {origin.seq}: it belongs to another journal than this box "
            f"delivered before"
        ),
        hint="give a box with a replaced journal another name",
        box=origin.box,
        seq=origin.seq,
    )


def load_origin_heads(directory: Path) -> dict[str, OriginHead]:
    """Read the checkpoint; empty without one. Raises IntegrityError if it is unreadable."""
    path = directory / FILE
    try:
        boxes = json.loads(path.read_bytes())["boxes"]
        return {str(box): (int(head["seq"]), str(head["hash"])) for box, head in boxes.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damage_error(path, 0, None, "cannot be read") from error


def save_origin_heads(directory: Path, heads: Mapping[str, OriginHead]) -> None:
    """Replace the checkpoint. Raises OSError."""
    boxes = {box: {"seq": seq, "hash": digest} for box, (seq, digest) in heads.items()}
    replace_file(directory / FILE, canonical_json({"boxes": boxes}) + b"\n")
