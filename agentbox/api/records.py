"""Bodies of requests that are no record of a slot, and answers of routes of the box."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from agentbox.adapters.beads.contract import BeadSpec, Outcome
from agentbox.adapters.events.contract import NewEvent
from agentbox.adapters.memory.contract import Hit
from agentbox.adapters.orchestrator.contract import AgentSpec, Signal
from agentbox.adapters.wire import JsonObj, JsonValue, Record, Scalar, record


@record
class NewBead(BeadSpec):
    """A BeadSpec whose `creator` defaults to the caller; naming another needs the scope admin."""

    creator: str = ""


@record
class ClaimBody(Record):
    """`lease_id` is a random UUID of the caller; `lease_s` None means the slot's `lease_seconds`."""

    lease_id: str
    assignee: str | None = None
    lease_s: int | None = None


@record
class ClaimNextBody(ClaimBody):
    """Only beads below `parent_id`, and with all of `tags`, where these are given."""

    parent_id: str | None = None
    tags: tuple[str, ...] = ()


@record
class HeartbeatBody(Record):
    lease_id: str
    lease_s: int | None = None


@record
class ReleaseBody(Record):
    lease_id: str
    delay_s: int = 0
    note: str = ""


@record
class CloseBody(Record):
    """A claimed bead needs its lease id, or the scope admin and no `force` that is false."""

    outcome: Outcome = "done"
    note: str = ""
    result: JsonValue = None
    lease_id: str | None = None
    force: bool | None = None


@record
class StoreBody(Record):
    """`text` is what is searched; without it the strings of the value. `ttl_s` None keeps the entry."""

    value: JsonValue
    text: str | None = None
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    ttl_s: int | None = None


@record
class SearchBody(Record):
    """`flt` is a filter on metadata; `min_cosine` leaves out what is less alike."""

    query: str
    namespaces: tuple[str, ...] = ("default",)
    limit: int = 10
    mode: Literal["hybrid", "vector", "text"] = "hybrid"
    flt: JsonObj = field(default_factory=dict)
    min_cosine: float | None = None


@record
class Hits(Record):
    hits: tuple[Hit, ...]


@record
class EventsBody(Record):
    events: tuple[NewEvent, ...]


@record
class Appended(Record):
    """Of records that a box delivered the answer says its last one that is known here, too; then `first_seq` and `last_seq`
    are -1 when all of them were."""

    first_seq: int
    last_seq: int
    watermark: int | None = None


@record
class Head(Record):
    """(-1, 64 zeros) for an empty journal."""

    seq: int
    hash: str


@record
class VerifyBody(Record):
    from_seq: int = 0


@record
class SignalBody(Record):
    generation: int
    signal: Signal


@record
class RunBody(Record):
    """`stdin` is base64."""

    spec: AgentSpec
    stdin: bytes = b""
    timeout_s: float = 600
    max_output: int = 1 << 20


@record
class Draining(Record):
    state: str


@record
class Applied(Record):
    """Changed key paths by what they need. Only when all are `live` was anything changed."""

    live: tuple[str, ...] = ()
    boot: tuple[str, ...] = ()
    recreate: tuple[str, ...] = ()
    rebuild: tuple[str, ...] = ()


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind
    for kind in (
        NewBead, ClaimBody, ClaimNextBody, HeartbeatBody, ReleaseBody, CloseBody, StoreBody, SearchBody, Hits, EventsBody, Appended, Head, VerifyBody,
        SignalBody, RunBody, Draining, Applied,
    )
}  # fmt: skip
