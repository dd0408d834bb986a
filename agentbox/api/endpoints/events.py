"""The journal over HTTP, where more is done than the slot's call."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

from starlette.responses import Response

from agentbox.adapters.events.search.index import EventIndex
from agentbox.adapters.events.search.query import check_search
from agentbox.adapters.runtime.input_checks import check_range, decode_cursor, encode_cursor
from agentbox.adapters.runtime.paging import PageBudget
from agentbox.api.auth.authentication import Caller
from agentbox.api.auth.bindings import bound_source
from agentbox.api.auth.write_attribution import check_type, resolve_principal
from agentbox.api.background.approver_presence import SCOPE
from agentbox.api.endpoints.cloudevents import (
    MEDIA_TYPES,
    DeliveredRecords,
    parse_delivered,
    parse_events,
)
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.arguments import MAX_CURSOR, PAGE_BOUNDS
from agentbox.contracts.event_search import EventSearch, EventStats, FoundEvents
from agentbox.contracts.events import (
    Appended,
    Event,
    EventBatch,
    EventFilter,
    Events,
    EventsBody,
    Head,
    NewEvent,
    origin_name,
)
from agentbox.core.http.problems import invalid
from agentbox.core.http.responses import EventStreamResponse, RecordResponse
from agentbox.core.http.sse import ServerSentEvent
from agentbox.core.records.wire import to_json, to_wire
from agentbox.core.slot_errors import CursorExpired, NotFound, PermissionDenied

_SEQ = re.compile(r"[0-9]{1,15}")


class EventHandlers:
    """`connect_approver` registers an approver that follows the events, until its result is called;
    `closing` ends streams.
    """

    def __init__(
        self,
        events: Events,
        index: EventIndex,
        connect_approver: Callable[[], Callable[[], None]],
        closing: asyncio.Event,
    ) -> None:
        self._events, self._connect_approver, self._closing = events, connect_approver, closing
        self._index = index

    async def append(self, request: ApiRequest, caller: Caller) -> Response:
        """All or nothing. Records that a box delivers from its own journal are stored under that
        box, each once.
        """
        is_cloud = _is_cloud(request)
        if is_cloud and (delivered := parse_delivered(request.body)) is not None:
            return await self._deliver(caller, delivered)
        events: Sequence[NewEvent] = (
            parse_events(request.body) if is_cloud else EventsBody.from_wire(request.body).events
        )
        if not events:
            raise invalid("/events", "must contain at least one event")
        for index, event in enumerate(events):
            check_type(caller, f"/events/{index}/type", event.type)
        done = await self._events.append(
            tuple(
                _attribute(caller, f"/events/{index}/source", event)
                for index, event in enumerate(events)
            )
        )
        return RecordResponse(Appended(first_seq=done[0].seq, last_seq=done[-1].seq), 201)

    async def _deliver(self, caller: Caller, delivered: DeliveredRecords) -> Response:
        if not caller.journal_box:
            raise PermissionDenied(
                "cannot accept records of a journal: "
                "the token is not bound to a box; create one with --origin-box",
                scope="events:origin",
            )
        origin = origin_name(caller.journal_box, delivered.epoch)
        done = await self._events.receive(origin, delivered.records)
        body = Appended(first_seq=done.first_seq, last_seq=done.last_seq, watermark=done.watermark)
        return RecordResponse(body, 201 if done.stored else 200)

    async def read(self, caller: Caller, since: int, limit: int, filter: EventFilter) -> EventBatch:
        return await self._events.read(since=since, limit=limit, filter=_restrict(caller, filter))

    async def show(self, seq: str) -> Event:
        if _SEQ.fullmatch(seq):
            batch = await self._events.read(since=int(seq) - 1, limit=1)
            if batch.events and batch.events[0].seq == int(seq):
                return batch.events[0]
        raise NotFound("cannot find this event", resource="event", id=seq)

    async def search(self, search: EventSearch, limit: int, cursor: str | None) -> FoundEvents:
        """Of the indexed records; about 1 MiB a page."""
        check_range(limit, "/limit", PAGE_BOUNDS)
        check_search(search)
        head_seq, _ = await self._events.head()
        indexed_seq, _ = await self._index.position()
        listing = ["search", search.to_wire()]
        after = decode_cursor(cursor, listing, 1)
        before = head_seq + 1 if after is None else _position(after[0])
        found = await self._index.find(search, before, limit + 1)
        items, budget, has_more = list[Event](), PageBudget(limit), len(found) > limit
        for seq in found:
            event = await self._stored(seq)
            if event is not None and not budget.admit(len(to_json(event))):
                has_more = True
                break
            items += [] if event is None else [event]
            before = seq
        cursor = encode_cursor(listing, (before,)) if has_more else None
        return FoundEvents(
            items=tuple(items), next_cursor=cursor, indexed_seq=indexed_seq, head_seq=head_seq
        )

    async def stats(self) -> EventStats:
        head_seq, _ = await self._events.head()
        indexed_seq, _ = await self._index.position()
        types = await self._index.counts()
        return EventStats(
            events=sum(types.values()), types=types, indexed_seq=indexed_seq, head_seq=head_seq
        )

    async def _stored(self, seq: int) -> Event | None:
        """None for a record that the journal no longer has."""
        try:
            events = (await self._events.read(since=seq - 1, limit=1)).events
        except CursorExpired:
            return None
        return events[0] if events and events[0].seq == seq else None

    async def head(self) -> Head:
        seq, digest = await self._events.head()
        return Head(seq=seq, hash=digest)

    async def subscribe(self, caller: Caller, since: int | None, filter: EventFilter) -> Response:
        """An expired `since` is 410 before the first byte."""
        restricted = _restrict(caller, filter)
        if since is None:
            since, _ = await self._events.head()
        else:
            await self._events.read(since=since, limit=1)
        disconnect = self._connect_approver() if caller.has_scope(SCOPE) else None
        return EventStreamResponse(self._sent(since, restricted), self._closing, close=disconnect)

    async def _sent(self, since: int, filter: EventFilter) -> AsyncIterator[ServerSentEvent]:
        async for event in self._events.subscribe(since=since, filter=filter):
            yield ServerSentEvent(str(event.seq), event.type, to_wire(event))


def _position(value: object) -> int:
    """Of a cursor. Raises ValidationError."""
    if not isinstance(value, int) or not 0 <= value <= MAX_CURSOR:
        raise invalid("/cursor", "is not a cursor of this listing")
    return value


def _is_cloud(request: ApiRequest) -> bool:
    return request.headers["content-type"].partition(";")[0].strip().lower() in MEDIA_TYPES


def _attribute(caller: Caller, pointer: str, event: NewEvent) -> NewEvent:
    source = bound_source(caller, event.source) or resolve_principal(caller, pointer, event.source)
    return NewEvent.from_wire({**event.to_wire(), "source": source, **_agent_fields(caller, event)})


def _agent_fields(caller: Caller, event: NewEvent) -> dict[str, str]:
    """An agent's events refer to itself only. Raises PermissionDenied for another agent, session or
    trace.
    """
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


def _restrict(caller: Caller, filter: EventFilter) -> EventFilter:
    """An agent reads its own events only. Raises PermissionDenied for another source."""
    if not caller.agent_id:
        return filter
    return replace(filter, source=bound_source(caller, filter.source))
