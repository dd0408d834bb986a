"""Records of other boxes in this journal (V16): what is new of a delivery, and how far each box has come."""

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
from agentbox.core.slot_errors import AlteredRecord, OriginConflict

FILE = "origins.json"
SAVE_INTERVAL = 1000  # records of this journal between two of its checkpoints; far fewer than opening reads again
OriginHead = tuple[int, str]  # number and hash of the last record known of a box


def draft_from_delivery(event: Event, box: str, pointer: str) -> chain.PendingRecord:
    """A record as the box sent it, to be stored here. Raises ValidationError, and AlteredRecord when its hash is another."""
    if event.origin is not None:
        raise invalid_value(
            f"{pointer}/origin", "is of a third box: such records are taken from that box only"
        )
    draft = draft_from_event(event, pointer)
    if chain.encode_line(draft.members, event.seq, event.ts, event.prev_hash)[1] != event.hash:
        raise AlteredRecord(
            f"cannot take record {event.seq}: its hash is not that of what it says",
            box=box,
            seq=event.seq,
        )
    origin = Origin(box=box, seq=event.seq, ts=event.ts, prev_hash=event.prev_hash, hash=event.hash)
    members = {**draft.members, "origin": rfc8785.dumps(origin.to_wire())}
    return chain.PendingRecord({**draft.event, "origin": origin}, members)


def new_drafts(
    drafts: Sequence[chain.PendingRecord],
    head: OriginHead | None,
    find_stored: Callable[[chain.PendingRecord], Event | None],
    create_self_draft: Callable[[str, dict[str, Any]], chain.PendingRecord],
) -> tuple[list[chain.PendingRecord], OriginHead | None]:
    """Those beyond what is known of their box, each gap told before it; and what is known from then on.

    Raises OriginConflict when they are of another journal than the records before.
    """
    result: list[chain.PendingRecord] = []
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
        f"cannot take record {origin.seq}: it does not belong to the journal that this box delivered before",
        hint="a box whose journal was replaced needs a name of its own",
        box=origin.box,
        seq=origin.seq,
    )


def load_origin_heads(directory: Path) -> dict[str, OriginHead]:
    """What the checkpoint says; empty without one. Raises IntegrityError for one that cannot be read."""
    path = directory / FILE
    try:
        boxes = json.loads(path.read_bytes())["boxes"]
        return {str(box): (int(head["seq"]), str(head["hash"])) for box, head in boxes.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damage_error(path, 0, None, "cannot be read") from error


def save_origin_heads(directory: Path, heads: Mapping[str, OriginHead]) -> None:
    """Replaces the checkpoint. Raises OSError."""
    boxes = {box: {"seq": seq, "hash": digest} for box, (seq, digest) in heads.items()}
    replace_file(directory / FILE, canonical_json({"boxes": boxes}) + b"\n")
