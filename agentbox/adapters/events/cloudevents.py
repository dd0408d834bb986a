"""Journal records as CloudEvents 1.0 in structured JSON (V15)."""

from typing import Any

from agentbox.contracts.events import Event

TYPE_PREFIX = "agentbox."
BATCH = "application/cloudevents-batch+json"
SINGLE = "application/cloudevents+json"


def cloud_event(event: Event, epoch: int = 0) -> dict[str, Any]:
    """Return the event with its chain position as extensions. `agentboxseq` is a string because
    integers of CloudEvents have 32 bits; so is `agentboxepoch`, absent for 0."""
    wire = event.to_wire()
    members = {
        "specversion": "1.0",
        "id": wire["id"],
        "source": wire["source"],
        "type": TYPE_PREFIX + wire["type"],
        "time": wire["ts"],
        "subject": wire["subject"],
        "datacontenttype": "application/json",
        "data": wire["data"],
        "agentboxseq": str(wire["seq"]),
        "agentboxhash": wire["hash"],
        "agentboxprev": wire["prev_hash"],
        "agentboxagent": wire["agent_id"],
        "agentboxsession": wire["session_id"],
        "agentboxtrace": wire["trace_id"],
        "agentboxepoch": str(epoch) if epoch else None,
        "agentboxorigin": None if event.origin is None else event.origin.box,
    }
    return {name: value for name, value in members.items() if value is not None}
