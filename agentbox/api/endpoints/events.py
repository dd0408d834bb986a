"""The journal over HTTP."""

import re
from collections.abc import AsyncIterator, Sequence

from starlette.responses import Response

from agentbox.api.auth.bindings import bound_source
from agentbox.api.auth.naming import check_type, resolve_principal
from agentbox.api.background.approver_presence import SCOPE
from agentbox.api.endpoints.cloudevents import MEDIA_TYPES, parse_delivered, parse_events
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.arguments import MAX_CURSOR
from agentbox.contracts.bodies import VerifyBody
from agentbox.contracts.events import (
    LIMIT,
    Appended,
    Delivery,
    Event,
    EventBatch,
    EventFilter,
    EventsBody,
    Head,
    NewEvent,
    VerifyReport,
)
from agentbox.core.http.problems import invalid
from agentbox.core.http.responses import EventStreamResponse, RecordResponse
from agentbox.core.http.sse import ServerSentEvent
from agentbox.core.records.wire import to_wire
from agentbox.core.slot_errors import NotFound, PermissionDenied

FILTERS = ("source", "subject", "agent_id", "session_id")
DEFAULT_PAGE = 100
_SEQ = re.compile(r"[0-9]{1,15}")


async def append(request: ApiRequest) -> Response:
    """All or nothing. Records that a box delivers from its own journal are stored under that box,
    each once.
    """
    if _is_cloud(request) and (records := parse_delivered(request.body)) is not None:
        return await _deliver(request, records)
    events = _parse_events(request)
    if not events:
        raise invalid("/events", "must contain at least one event")
    for index, event in enumerate(events):
        check_type(request, f"/events/{index}/type", event.type)
    attributed = tuple(
        _attribute(request, f"/events/{index}/source", event) for index, event in enumerate(events)
    )
    done = await request.services.slots.events.append(attributed)
    return RecordResponse(Appended(first_seq=done[0].seq, last_seq=done[-1].seq), 201)


async def _deliver(request: ApiRequest, records: Sequence[Event]) -> Response:
    if not request.caller.journal_box:
        raise PermissionDenied(
            "cannot accept records of a journal: "
            "the token is not bound to a box; create one with --origin-box",
            scope="events:origin",
        )
    done = await request.services.slots.events.receive(request.caller.journal_box, records)
    body = Appended(first_seq=done.first_seq, last_seq=done.last_seq, watermark=done.watermark)
    return RecordResponse(body, 201 if done.stored else 200)


def _is_cloud(request: ApiRequest) -> bool:
    return request.headers["content-type"].partition(";")[0].strip().lower() in MEDIA_TYPES


def _parse_events(request: ApiRequest) -> Sequence[NewEvent]:
    if _is_cloud(request):
        return parse_events(request.body)
    return request.record(EventsBody).events


def _attribute(request: ApiRequest, pointer: str, event: NewEvent) -> NewEvent:
    source = bound_source(request.caller, event.source) or resolve_principal(
        request, pointer, event.source
    )
    return NewEvent.from_wire(
        {**event.to_wire(), "source": source, **_agent_fields(request, event)}
    )


def _agent_fields(request: ApiRequest, event: NewEvent) -> dict[str, str]:
    """An agent's events refer to itself only. Raises PermissionDenied for another agent, session or
    trace.
    """
    caller = request.caller
    if not caller.agent_id:
        return {}
    agent_fields = {
        "agent_id": caller.agent_id,
        "session_id": caller.session_id,
        "trace_id": caller.trace_id,
    }
    if any(getattr(event, name) not in (None, value) for name, value in agent_fields.items()):
        raise PermissionDenied(
            "cannot append events of another agent, session or trace", scope="events:source"
        )
    return agent_fields


def _filter(request: ApiRequest) -> EventFilter:
    """`types` is a comma-separated list."""
    wire: dict[str, object] = {
        name: request.query[name] for name in FILTERS if name in request.query
    }
    if "types" in request.query:
        wire["types"] = [kind for kind in request.query["types"].split(",") if kind]
    if request.caller.agent_id:
        wire["source"] = bound_source(request.caller, request.query.get("source"))
    return EventFilter.from_wire(wire)


async def read(request: ApiRequest) -> EventBatch:
    since, limit = (
        request.integer("since", -1, -1, MAX_CURSOR),
        request.integer("limit", DEFAULT_PAGE, *LIMIT),
    )
    return await request.services.slots.events.read(
        since=since, limit=limit, filter=_filter(request)
    )


async def show(request: ApiRequest) -> Event:
    text = request.parameters["seq"]
    if _SEQ.fullmatch(text):
        batch = await request.services.slots.events.read(since=int(text) - 1, limit=1)
        if batch.events and batch.events[0].seq == int(text):
            return batch.events[0]
    raise NotFound("cannot find this event", resource="event", id=text)


async def head(request: ApiRequest) -> Head:
    seq, digest = await request.services.slots.events.head()
    return Head(seq=seq, hash=digest)


async def delivery(request: ApiRequest) -> Delivery:
    limit = request.integer("limit", DEFAULT_PAGE, 0, LIMIT[1])
    return await request.services.slots.events.delivery(limit=limit)


async def verify(request: ApiRequest) -> VerifyReport:
    return await request.services.slots.events.verify(from_seq=request.record(VerifyBody).from_seq)


async def stream(request: ApiRequest) -> Response:
    """An expired `since` is 410 before the first byte."""
    events, since, filter = request.services.slots.events, request.since(-1), _filter(request)
    if since is None:
        since, _ = await events.head()
    else:
        await events.read(since=since, limit=1)

    async def sent() -> AsyncIterator[ServerSentEvent]:
        async for event in events.subscribe(since=since, filter=filter):
            yield ServerSentEvent(str(event.seq), event.type, to_wire(event))

    disconnect = request.services.approvers.connect() if request.caller.has_scope(SCOPE) else None
    return EventStreamResponse(sent(), request.services.closing, close=disconnect)
