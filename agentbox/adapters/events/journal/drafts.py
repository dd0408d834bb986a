"""Appended events as drafts: checked, completed with the caller's context, encoded in the bytes to
be hashed."""

import re
from typing import Any

import rfc8785

from agentbox.adapters.events.journal import chain
from agentbox.adapters.runtime.context import CallContext
from agentbox.adapters.runtime.input_checks import check_text
from agentbox.contracts.events import MAX_NAME, MAX_TYPE, TYPE_PATTERN, Event, NewEvent
from agentbox.core.records.wire import JsonObj, invalid_value, to_wire

_TYPE = re.compile(TYPE_PATTERN)


def create_draft(
    event: NewEvent, caller: CallContext, box: str, new_id: str, pointer: str = ""
) -> chain.UnchainedRecord:
    """Raises ValidationError or ValueTooLarge with a pointer below `pointer`."""
    members: dict[str, Any] = {
        "id": event.id if event.id is not None else new_id,
        "type": event.type,
        "source": event.source
        if event.source is not None
        else caller.principal or f"urn:agentbox:box:{box}",
        "subject": event.subject,
        "agent_id": event.agent_id if event.agent_id is not None else caller.agent_id,
        "session_id": event.session_id if event.session_id is not None else caller.session_id,
        "trace_id": event.trace_id if event.trace_id is not None else caller.trace_id,
    }
    return _build_draft(members, event.data, pointer)


def draft_from_event(event: Event, pointer: str) -> chain.UnchainedRecord:
    """Like `create_draft`, for a record that has all members."""
    names = ("id", "type", "source", "subject", "agent_id", "session_id", "trace_id")
    return _build_draft({name: getattr(event, name) for name in names}, event.data, pointer)


def _build_draft(members: dict[str, Any], data: JsonObj, pointer: str) -> chain.UnchainedRecord:
    kind = members["type"]
    if not isinstance(kind, str) or len(kind) > MAX_TYPE or _TYPE.fullmatch(kind) is None:
        raise invalid_value(
            f"{pointer}/type", f"must be dotted lower case of at most {MAX_TYPE} characters"
        )
    for name, text in members.items():
        if text is not None:
            check_text(text, f"{pointer}/{name}", max_length=MAX_NAME)
    encoded = {name: rfc8785.dumps(text) for name, text in members.items()}
    encoded["data"] = chain.canonical_data(data)
    return chain.UnchainedRecord({**members, "data": to_wire(data)}, encoded)
