"""The journal over HTTP."""

import re
from collections.abc import AsyncIterator, Sequence

from agentbox.api.auth.bindings import bound_source
from agentbox.api.auth.naming import check_type, resolve_principal
from agentbox.api.background.approver_presence import SCOPE
from agentbox.api.endpoints.cloudevents import MEDIA_TYPES, parse_delivered, parse_events
from agentbox.api.http.call import MAX_CURSOR, Call
from agentbox.api.http.reply import EventStream, Reply, ServerSentEvent
from agentbox.contracts.bodies import Appended, EventsBody, Head, VerifyBody
from agentbox.contracts.events import LIMIT, Event, EventFilter, NewEvent
from agentbox.core.http.problems import invalid
from agentbox.core.records.wire import to_wire
from agentbox.core.slot_errors import NotFound, PermissionDenied

FILTERS = ("source", "subject", "agent_id", "session_id")
DEFAULT_PAGE = 100
_SEQ = re.compile(r"[0-9]{1,15}")


async def append(call: Call) -> Reply:
    """All or nothing. Records that a box delivers from its own journal are stored under that box,
    each once.
    """
    if _is_cloud(call) and (records := parse_delivered(call.body)) is not None:
        return await _deliver(call, records)
    events = _parse_events(call)
    if not events:
        raise invalid("/events", "must contain at least one event")
    for index, event in enumerate(events):
        check_type(call, f"/events/{index}/type", event.type)
    attributed = tuple(
        _attribute(call, f"/events/{index}/source", event) for index, event in enumerate(events)
    )
    done = await call.services.slots.events.append(attributed)
    return Reply(Appended(first_seq=done[0].seq, last_seq=done[-1].seq), status=201)


async def _deliver(call: Call, records: Sequence[Event]) -> Reply:
    if not call.caller.journal_box:
        raise PermissionDenied(
            "cannot accept records of a journal: "
            "the token is not bound to a box; create one with --origin-box",
            scope="events:origin",
        )
    done = await call.services.slots.events.receive(call.caller.journal_box, records)
    body = Appended(first_seq=done.first_seq, last_seq=done.last_seq, watermark=done.watermark)
    return Reply(body, status=201 if done.stored else 200)


def _is_cloud(call: Call) -> bool:
    return call.headers["content-type"].partition(";")[0].strip().lower() in MEDIA_TYPES


def _parse_events(call: Call) -> Sequence[NewEvent]:
    if _is_cloud(call):
        return parse_events(call.body)
    return call.record(EventsBody).events


def _attribute(call: Call, pointer: str, event: NewEvent) -> NewEvent:
    source = bound_source(call.caller, event.source) or resolve_principal(
        call, pointer, event.source
    )
    return NewEvent.from_wire({**event.to_wire(), "source": source, **_agent_fields(call, event)})


def _agent_fields(call: Call, event: NewEvent) -> dict[str, str]:
    """An agent's events refer to itself only. Raises PermissionDenied for another agent, session or
    trace.
    """
    caller = call.caller
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


def _filter(call: Call) -> EventFilter:
    """`types` is a comma-separated list."""
    wire: dict[str, object] = {name: call.query[name] for name in FILTERS if name in call.query}
    if "types" in call.query:
        wire["types"] = [kind for kind in call.query["types"].split(",") if kind]
    if call.caller.agent_id:
        wire["source"] = bound_source(call.caller, call.query.get("source"))
    return EventFilter.from_wire(wire)


async def read(call: Call) -> Reply:
    since, limit = (
        call.integer("since", -1, -1, MAX_CURSOR),
        call.integer("limit", DEFAULT_PAGE, *LIMIT),
    )
    return Reply(
        await call.services.slots.events.read(since=since, limit=limit, filter=_filter(call))
    )


async def show(call: Call) -> Reply:
    text = call.parameters["seq"]
    if _SEQ.fullmatch(text):
        batch = await call.services.slots.events.read(since=int(text) - 1, limit=1)
        if batch.events and batch.events[0].seq == int(text):
            return Reply(batch.events[0])
    raise NotFound("cannot find this event", resource="event", id=text)


async def head(call: Call) -> Reply:
    seq, digest = await call.services.slots.events.head()
    return Reply(Head(seq=seq, hash=digest))


async def delivery(call: Call) -> Reply:
    limit = call.integer("limit", DEFAULT_PAGE, 0, LIMIT[1])
    return Reply(await call.services.slots.events.delivery(limit=limit))


async def verify(call: Call) -> Reply:
    return Reply(await call.services.slots.events.verify(from_seq=call.record(VerifyBody).from_seq))


async def stream(call: Call) -> EventStream:
    """An expired `since` is 410 before the first byte."""
    events, since, filter = call.services.slots.events, call.since(-1), _filter(call)
    if since is None:
        since, _ = await events.head()
    else:
        await events.read(since=since, limit=1)

    async def sent() -> AsyncIterator[ServerSentEvent]:
        async for event in events.subscribe(since=since, filter=filter):
            yield ServerSentEvent(str(event.seq), event.type, to_wire(event))

    disconnect = call.services.approvers.connect() if call.caller.has_scope(SCOPE) else None
    return EventStream(sent()) if disconnect is None else EventStream(sent(), close=disconnect)
