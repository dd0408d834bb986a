"""CloudEvents 1.0 in structured JSON form, single or batch, read as events to append."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentbox.adapters.events.contract import NewEvent
from agentbox.api.problems import invalid

MEDIA_TYPES = ("application/cloudevents+json", "application/cloudevents-batch+json")
_REQUIRED = ("id", "source", "specversion", "type")


def events_of(document: Any) -> Sequence[NewEvent]:
    """Raises ValidationError with the pointer of what is no CloudEvent."""
    if isinstance(document, list):
        return tuple(_event(row, f"/{index}") for index, row in enumerate(document))
    return (_event(document, ""),)


def _event(row: Any, at: str) -> NewEvent:
    if not isinstance(row, Mapping):
        raise invalid(at, "must be an object")
    for name in _REQUIRED:
        if not isinstance(row.get(name), str) or not row[name]:
            raise invalid(f"{at}/{name}", "must be a string that is not empty")
    if row["specversion"] != "1.0":
        raise invalid(f"{at}/specversion", "must be 1.0")
    data = row.get("data", {})
    if not isinstance(data, Mapping):
        raise invalid(f"{at}/data", "must be an object")
    wire = {"type": row["type"], "id": row["id"], "source": row["source"], "subject": row.get("subject"), "data": data}
    extensions = {"agent_id": row.get("agentboxagent"), "session_id": row.get("agentboxsession")}
    return NewEvent.from_wire({**wire, **extensions})
