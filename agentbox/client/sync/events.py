# Written by tools/sync_client.py from async_client/events.py.
# Written by tools/client_operations.py from agentbox/contracts.

"""The event journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbox.client.transport import decode, decode_event

if TYPE_CHECKING:
    from datetime import datetime

    from agentbox.client.sync.request_sender import RequestSender
    from agentbox.contracts.event_search import EventStats, FoundEvents
    from agentbox.contracts.events import (
        Appended,
        Delivery,
        Event,
        EventBatch,
        NewEvent,
        VerifyReport,
    )


class EventsClient:
    """The event journal. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: RequestSender) -> None:
        self._box = box

    def append(self, events: Sequence[NewEvent | Mapping[str, Any]]) -> Appended:
        """Appends events, all or none: {events}, or CloudEvents, single or batch. For records
        delivered by a box: 200 if all are known."""
        from agentbox.contracts.events import Appended

        response = self._box.request("append_events", body={"events": events})
        return decode(Appended, response)

    def read(
        self,
        *,
        since: int = -1,
        limit: int = 100,
        types: Sequence[str] = (),
        source: str | None = None,
        subject: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
    ) -> EventBatch:
        """Events after `since`, in order."""
        from agentbox.contracts.events import EventBatch

        response = self._box.request(
            "read_events",
            query={
                "since": since,
                "limit": limit,
                "types": types,
                "source": source,
                "subject": subject,
                "agent_id": agent_id,
                "session_id": session_id,
            },
        )
        return decode(EventBatch, response)

    def subscribe(
        self,
        *,
        since: int | None = None,
        types: Sequence[str] = (),
        source: str | None = None,
        subject: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        reconnect_timeout: float = 60.0,
    ) -> Iterator[Event]:
        """Live events, after `since` or Last-Event-ID; by default from now on."""
        from agentbox.contracts.events import Event

        events = self._box.stream(
            "stream_events",
            query={
                "since": since,
                "types": types,
                "source": source,
                "subject": subject,
                "agent_id": agent_id,
                "session_id": session_id,
            },
            reconnect_timeout=reconnect_timeout,
        )
        for event in events:
            yield decode_event(Event, event)

    def head(self) -> tuple[int, str]:
        """Number and hash of the last event."""
        from agentbox.contracts.events import Head

        response = self._box.request("head_event")
        result = decode(Head, response)
        return result.seq, result.hash

    def delivery(self, *, limit: int = 100) -> Delivery:
        """Delivery progress of the sink, and what it permanently rejected."""
        from agentbox.contracts.events import Delivery

        response = self._box.request("event_delivery", query={"limit": limit})
        return decode(Delivery, response)

    def verify(self, *, from_seq: int = 0) -> VerifyReport:
        """Checks the hash chain of the journal."""
        from agentbox.contracts.events import VerifyReport

        response = self._box.request("verify_events", body={"from_seq": from_seq}, wait_s=300)
        return decode(VerifyReport, response)

    def search(
        self,
        *,
        words: str = "",
        types: Sequence[str] = (),
        agent_id: str | None = None,
        session_id: str | None = None,
        trace_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> FoundEvents:
        """Events by words, type, agent, session, trace and time, newest first."""
        from agentbox.contracts.event_search import FoundEvents

        response = self._box.request(
            "search_events",
            query={
                "words": words,
                "types": types,
                "agent_id": agent_id,
                "session_id": session_id,
                "trace_id": trace_id,
                "since": since,
                "until": until,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return decode(FoundEvents, response)

    def stats(self) -> EventStats:
        """How many events of each type the journal has."""
        from agentbox.contracts.event_search import EventStats

        response = self._box.request("event_stats")
        return decode(EventStats, response)

    def show(self, seq: str) -> Event:
        """One event."""
        from agentbox.contracts.events import Event

        response = self._box.request("show_event", {"seq": seq})
        return decode(Event, response)
