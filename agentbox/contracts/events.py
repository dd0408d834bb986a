"""The contract of the events slot: the append-only, hash-chained journal."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Protocol

from agentbox.contracts.arguments import MAX_CURSOR
from agentbox.contracts.routes.operation import spread
from agentbox.core.records.bounds import bounded_text, item_count, number_range
from agentbox.core.records.wire import JsonObj, Record, record

CONTRACT_VERSION = "1.2.0"
GENESIS = "0" * 64
MAX_DATA = 64 << 10  # bytes of one event's data as RFC 8785
LIMIT = (1, 1000)
MAX_TYPE = 128  # characters
MAX_NAME = 512  # characters, of each text except the type
TYPE_PATTERN = r"^[a-z0-9_-]+(\.[a-z0-9_-]+)*$"

Name = Annotated[str | None, bounded_text(maximum=MAX_NAME)]
Since = Annotated[int, number_range(-1, MAX_CURSOR)]


@record
class NewEvent(Record):
    """An event to append. `source`, `agent_id`, `session_id` and `trace_id` default to the
    caller's; `id` to a new one.
    """

    type: Annotated[str, bounded_text(maximum=MAX_TYPE, pattern=TYPE_PATTERN)]
    data: JsonObj
    source: Name = None
    subject: Name = None
    agent_id: Name = None
    session_id: Name = None
    trace_id: Name = None
    id: Name = None


@record
class Origin(Record):
    """Position of a delivered record in the journal of its own box. `hash` is over the record as it
    is there, with `seq` and `ts` of this object.
    """

    box: str
    seq: int
    ts: datetime
    prev_hash: str
    hash: str


@record
class Event(Record):
    """A stored event. `hash` = hex SHA-256 of ascii(prev_hash) and the RFC 8785 form of the rest.
    `origin` None: of this box; then the member is absent on the wire and in the journal.
    """

    seq: int
    id: str
    ts: datetime
    type: str
    source: str
    subject: str | None
    agent_id: str | None
    session_id: str | None
    trace_id: str | None
    data: JsonObj
    prev_hash: str
    hash: str
    origin: Origin | None = None

    def to_wire(self) -> dict[str, Any]:
        """Plain JSON data."""
        wire = Record.to_wire(self)
        if self.origin is None:
            del wire["origin"]
        return wire


@record
class EventFilter(Record):
    """All fields that are set must match. `types` are exact, or `prefix.*`."""

    types: tuple[str, ...] = ()
    source: str | None = None
    subject: str | None = None
    agent_id: str | None = None
    session_id: str | None = None

    def matches(self, event: Event) -> bool:
        """Whether the event matches."""
        return (
            (not self.types or any(type_matches(pattern, event.type) for pattern in self.types))
            and self.source in (None, event.source)
            and self.subject in (None, event.subject)
            and self.agent_id in (None, event.agent_id)
            and self.session_id in (None, event.session_id)
        )


def type_matches(pattern: str, name: str) -> bool:
    """`slot.*` matches every type below `slot.`; else equality."""
    return name.startswith(pattern[:-1]) if pattern.endswith(".*") else name == pattern


ALL = EventFilter()


@record
class EventBatch(Record):
    """`next_since` includes records that the filter excluded, so that a filtered reader always
    advances.
    """

    events: tuple[Event, ...]
    next_since: int
    head_seq: int


@record
class VerifyError(Record):
    """Location and reason of damage in the journal. `line` counts from 1; 0 for the whole file."""

    file: str
    line: int
    seq: int | None
    reason: str


@record
class VerifyReport(Record):
    """The result of a verification. `first_seq` and `last_seq` are -1 for an empty journal."""

    ok: bool
    first_seq: int
    last_seq: int
    tail_hash: str
    error: VerifyError | None = None


@record
class Received(Record):
    """The result of a delivery from another box. `stored` records were new; `watermark` is the last
    known record of that box. `first_seq` and `last_seq` are of this journal, -1 if nothing was
    stored.
    """

    stored: int
    watermark: int
    first_seq: int = -1
    last_seq: int = -1


@record
class DeadLetter(Record):
    """A record that the sink permanently rejected, with status and message of its response."""

    seq: int
    id: str
    type: str
    status: int
    reason: str
    at: datetime


@record
class Delivery(Record):
    """Delivery progress of the sink. `cursor` is the last delivered record, -1 before the first.
    `held` is a problem that needs a person, `trouble` the reason of a retry; "" if none. `dead`
    counts dead letters, `letters` are the newest. `sink` is false if there is none.
    """

    sink: bool = False
    cursor: int = -1
    undelivered: int = 0
    oldest_s: float = 0.0
    held: str = ""
    trouble: str = ""
    dead: int = 0
    letters: tuple[DeadLetter, ...] = ()


@record
class EventsBody(Record):
    events: Annotated[tuple[NewEvent, ...], item_count(minimum=1)]


@record
class Appended(Record):
    """For records that a box delivers, `watermark` is the last one known here; `first_seq` and
    `last_seq` are -1 if all were known.
    """

    first_seq: int
    last_seq: int
    watermark: int | None = None


@record
class Head(Record):
    """(-1, 64 zeros) for an empty journal."""

    seq: int
    hash: str


class Events(Protocol):
    """The slot. Clauses V1 to V13 and V16 apply to all implementations."""

    async def append(self, events: Sequence[NewEvent]) -> tuple[Event, ...]:
        """All or none, contiguous; returns once durable (capability `durable`)."""
        ...

    async def read(
        self,
        *,
        since: Since = -1,
        limit: Annotated[int, number_range(*LIMIT)] = 100,
        filter: Annotated[EventFilter, spread()] = ALL,
    ) -> EventBatch: ...

    def subscribe(
        self, *, since: Since | None = None, filter: Annotated[EventFilter, spread()] = ALL
    ) -> AsyncIterator[Event]:
        """None = from now; else replays from after `since`, then follows."""
        ...

    async def head(self) -> tuple[int, str]:
        """Seq and hash of the last record; (-1, 64 zeros) when empty."""
        ...

    async def delivery(self, *, limit: Annotated[int, number_range(0, LIMIT[1])] = 100) -> Delivery:
        """Delivery progress, with at most `limit` dead letters."""
        ...

    async def verify(self, *, from_seq: int = 0) -> VerifyReport: ...

    async def receive(self, box: str, records: Sequence[Event]) -> Received:
        """Stores records of another box in their order, with `origin`, each once (V16). All or
        none.
        """
        ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind
    for kind in (
        NewEvent,
        Origin,
        Event,
        EventFilter,
        EventBatch,
        VerifyError,
        VerifyReport,
        Received,
        DeadLetter,
        Delivery,
    )
}


def origin_name(box: str, epoch: int) -> str:
    """The origin under which a sink stores the records of a box: `NAME`, or `NAME~<epoch>`."""
    return f"{box}~{epoch}" if epoch else box  # names of boxes have no ~
