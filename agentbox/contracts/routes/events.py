"""Routes of the slot events: the journal."""

from agentbox.contracts.routes.route import Route

READ = ("events:read",)
FILTERS = ("types", "source", "subject", "agent_id", "session_id")

EVENTS: tuple[Route, ...] = (
    Route(
        name="append_events",
        method="POST",
        path="/v1/events",
        scope=("events:write",),
        handler="events.append",
        request="EventsBody",
        response="Appended",
        statuses=(200, 201),
        body_limit=None,
        summary="Appends events, all or none: {events}, or CloudEvents, single or batch. For "
        "records delivered by a box: 200 if all are known.",
    ),
    Route(
        name="read_events",
        method="GET",
        path="/v1/events",
        scope=READ,
        handler="events.read",
        response="EventBatch",
        query=("since", "limit", *FILTERS),
        summary="Events after `since`, in order.",
    ),
    Route(
        name="stream_events",
        method="GET",
        path="/v1/events/stream",
        scope=READ,
        handler="events.stream",
        response="Event",
        query=("since", *FILTERS),
        stream=True,
        summary="Live events, after `since` or Last-Event-ID; by default from now on.",
    ),
    Route(
        name="head_event",
        method="GET",
        path="/v1/events/head",
        scope=READ,
        handler="events.head",
        response="Head",
        summary="Number and hash of the last event.",
    ),
    Route(
        name="event_delivery",
        method="GET",
        path="/v1/events/delivery",
        scope=READ,
        handler="events.delivery",
        response="Delivery",
        query=("limit",),
        summary="Delivery progress of the sink, and what it permanently rejected.",
    ),
    Route(
        name="show_event",
        method="GET",
        path="/v1/events/{seq}",
        scope=READ,
        handler="events.show",
        response="Event",
        summary="One event.",
    ),
    Route(
        name="verify_events",
        method="POST",
        path="/v1/events/verify",
        scope=("admin",),
        handler="events.verify",
        request="VerifyBody",
        response="VerifyReport",
        body_limit=None,
        summary="Checks the hash chain of the journal.",
    ),
)
