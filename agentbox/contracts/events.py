"""The contract of the events slot: the append-only, hash-chained journal."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Protocol

from agentbox.core.records.bounds import bounded_text
from agentbox.core.records.wire import JsonObj, Record, record

CONTRACT_VERSION = "1.2.0"
GENESIS = "0" * 64
MAX_DATA = 64 << 10  # bytes of one event's data as RFC 8785
LIMIT = (1, 1000)
MAX_TYPE = 128  # characters
MAX_NAME = 512  # characters, of each text beside the type
TYPE_PATTERN = r"^[a-z0-9_-]+(\.[a-z0-9_-]+)*$"

Name = Annotated[str | None, bounded_text(maximum=MAX_NAME)]


@record
class NewEvent(Record):
    """An event to append. `source`, `agent_id`, `session_id` and `trace_id` None mean the caller's; `id` None means a new one."""

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
    """Where a record that another box delivered stands in the journal of that box. `hash` is over the record as it stands
    there, with `seq` and `ts` from here."""

    box: str
    seq: int
    ts: datetime
    prev_hash: str
    hash: str


@record
class Event(Record):
    """An event as stored. `hash` = hex SHA-256 of ascii(prev_hash) and the RFC 8785 form of the rest. `origin` None: of this
    box; then the member is absent on the wire and in the journal."""

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
    """All that is set must match. `types` are exact, or `prefix.*`."""

    types: tuple[str, ...] = ()
    source: str | None = None
    subject: str | None = None
    agent_id: str | None = None
    session_id: str | None = None

    def matches(self, event: Event) -> bool:
        """Whether the event passes."""
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
    """`next_since` covers the records that the filter left out, so that a filtered reader always advances."""

    events: tuple[Event, ...]
    next_since: int
    head_seq: int


@record
class VerifyError(Record):
    """Where the journal is damaged, and how. `line` counts from 1; 0 when the file as a whole is meant."""

    file: str
    line: int
    seq: int | None
    reason: str


@record
class VerifyReport(Record):
    """What a verification found. `first_seq` and `last_seq` are -1 for an empty journal."""

    ok: bool
    first_seq: int
    last_seq: int
    tail_hash: str
    error: VerifyError | None = None


@record
class Received(Record):
    """What became of records of another box. `stored` of them are new here; `watermark` is the last one known of that box.
    `first_seq` and `last_seq` are of this journal, -1 when nothing was stored."""

    stored: int
    watermark: int
    first_seq: int = -1
    last_seq: int = -1


@record
class DeadLetter(Record):
    """A record that the sink refused for good, with the status of its answer and the sentence in it."""

    seq: int
    id: str
    type: str
    status: int
    reason: str
    at: datetime


@record
class Delivery(Record):
    """How far the sink of the events is. `cursor` is the last record that it has, -1 before the first. `held` says what a
    person must do something about, `trouble` why it waits; "" for nothing. `dead` are all dead letters, `letters` the newest.
    `sink` is false where events go nowhere else."""

    sink: bool = False
    cursor: int = -1
    undelivered: int = 0
    oldest_s: float = 0.0
    held: str = ""
    trouble: str = ""
    dead: int = 0
    letters: tuple[DeadLetter, ...] = ()


class Events(Protocol):
    """The slot. Clauses V1 to V13 and V16 bind every implementation."""

    async def append(self, events: Sequence[NewEvent]) -> tuple[Event, ...]:
        """All or none, contiguous; returns once durable (capability `durable`)."""
        ...

    async def read(
        self, *, since: int = -1, limit: int = 100, flt: EventFilter = ALL
    ) -> EventBatch: ...

    def subscribe(
        self, *, since: int | None = None, flt: EventFilter = ALL
    ) -> AsyncIterator[Event]:
        """None = from now; else replay from after `since`, then live."""
        ...

    async def head(self) -> tuple[int, str]:
        """Seq and hash of the last record; (-1, 64 zeros) when empty."""
        ...

    async def verify(self, *, from_seq: int = 0) -> VerifyReport: ...

    async def receive(self, box: str, records: Sequence[Event]) -> Received:
        """Records as another box has them, in its order: stored here with `origin`, each once (V16). All or none."""
        ...

    async def delivery(self, *, limit: int = 100) -> Delivery:
        """How far the sink is, with at most that many dead letters."""
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
