"""Operations of the slot events: the journal."""

from agentbox.contracts.event_search import EventEndpoints
from agentbox.contracts.events import Events, EventsBody
from agentbox.contracts.routes.operation import WITHOUT_TOOL, read, stream, tool, write
from agentbox.contracts.routes.resource import Resource

EVENTS = Resource(
    "events",
    Events,
    operations=(
        write(
            "append",
            "POST /v1/events",
            "Appends events, all or none: {events}, or CloudEvents, single or batch. For "
            "records delivered by a box: 200 if all are known.",
            route="append_events",
            body=EventsBody,
            response="Appended",
            statuses=(200, 201),
            redact=("/events/*/subject", "/events/*/data/**"),
            agent=WITHOUT_TOOL,
        ),
        read(
            "read",
            "GET /v1/events",
            "Events after `since`, in order.",
            route="read_events",
            agent=tool(
                "event/read",
                "Returns your events after `since`.",
                without=("source", "subject", "agent_id", "session_id"),
            ),
        ),
        stream(
            "subscribe",
            "GET /v1/events/stream",
            "Live events, after `since` or Last-Event-ID; by default from now on.",
            route="stream_events",
        ),
        read(
            "head",
            "GET /v1/events/head",
            "Number and hash of the last event.",
            route="head_event",
            response="Head",
        ),
        read(
            "delivery",
            "GET /v1/events/delivery",
            "Delivery progress of the sink, and what it permanently rejected.",
            route="event_delivery",
        ),
        read(
            "verify",
            "POST /v1/events/verify",
            "Checks the hash chain of the journal.",
            route="verify_events",
            scope=("audit:read",),
            deadline_s=300,
        ),
        write("receive", idempotent=True),
    ),
)
EVENT_ENDPOINTS = Resource(
    "events",
    EventEndpoints,
    operations=(
        read(
            "search",
            "GET /v1/events/search",
            "Events by words, type, agent, session, trace and time, newest first.",
            route="search_events",
            deadline_s=10,
        ),
        read(
            "stats",
            "GET /v1/events/stats",
            "How many events of each type the journal has.",
            route="event_stats",
            deadline_s=10,
        ),
        read("show", "GET /v1/events/{seq}", "One event.", route="show_event"),
    ),
)
RESOURCES = (EVENTS, EVENT_ENDPOINTS)
