"""Request bodies that are not records of a slot, and responses of routes of the box."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from agentbox.adapters.memory.checks import (
    HIT_LIMIT,
    MAX_METADATA,
    MAX_NAMESPACES,
    MAX_QUERY,
    MAX_TTL,
    MAX_VALUE,
    NAMESPACE,
)
from agentbox.adapters.memory.filters import SCHEMA as FILTER
from agentbox.contracts.beads import (
    DELAY_SECONDS,
    LEASE_SECONDS,
    BeadSpec,
    Document,
    Name,
    Outcome,
    Tags,
)
from agentbox.contracts.events import NewEvent
from agentbox.contracts.memory import Hit
from agentbox.contracts.orchestrator import MAX_OUTPUT, MAX_RUN_SECONDS, AgentSpec, Signal
from agentbox.core.records.bounds import bounded_text, item_count, number_range, schema_keywords
from agentbox.core.records.wire import JsonObj, JsonValue, Record, Scalar, record

LeaseId = Annotated[str, schema_keywords(format="uuid")]
LeaseSeconds = Annotated[int | None, number_range(*LEASE_SECONDS)]
Namespace = Annotated[str, bounded_text(pattern=NAMESPACE)]


@record
class NewBead(BeadSpec):
    """A BeadSpec whose `creator` defaults to the caller; another creator needs the scope admin."""

    creator: Name = ""


@record
class ClaimBody(Record):
    """`lease_id` is a random UUID of the caller; `lease_s` None means the slot's
    `lease_seconds`.
    """

    lease_id: LeaseId
    assignee: str | None = None
    lease_s: LeaseSeconds = None


@record
class ClaimNextBody(ClaimBody):
    """Limited to beads below `parent_id`, and with all of `tags`, if set."""

    parent_id: str | None = None
    tags: Tags = ()


@record
class HeartbeatBody(Record):
    lease_id: LeaseId
    lease_s: LeaseSeconds = None


@record
class ReleaseBody(Record):
    lease_id: LeaseId
    delay_s: Annotated[int, number_range(*DELAY_SECONDS)] = 0
    note: Document = ""


@record
class CloseBody(Record):
    """A claimed bead needs its lease id, or the scope admin without `force` = false."""

    outcome: Outcome = "done"
    note: Document = ""
    result: JsonValue = None
    lease_id: Annotated[str | None, schema_keywords(format="uuid")] = None
    force: bool | None = None


@record
class StoreBody(Record):
    """`text` is searched; by default the strings of the value. `ttl_s` None: no expiry."""

    value: JsonValue
    text: Annotated[str | None, bounded_text(maximum=MAX_VALUE)] = None
    metadata: Annotated[Mapping[str, Scalar], schema_keywords(maxProperties=MAX_METADATA)] = field(
        default_factory=dict
    )
    ttl_s: Annotated[int | None, number_range(1, MAX_TTL)] = None


@record
class SearchBody(Record):
    """`filter` is a filter on metadata; `min_cosine` excludes entries that are less similar."""

    query: Annotated[str, bounded_text(maximum=MAX_QUERY)]
    namespaces: Annotated[tuple[Namespace, ...], item_count(minimum=1, maximum=MAX_NAMESPACES)] = (
        "default",
    )
    limit: Annotated[int, number_range(*HIT_LIMIT)] = 10
    mode: Literal["hybrid", "vector", "text"] = "hybrid"
    filter: Annotated[JsonObj, schema_keywords(**FILTER)] = field(default_factory=dict)
    min_cosine: Annotated[float | None, number_range(-1, 1)] = None


@record
class Hits(Record):
    hits: tuple[Hit, ...]


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


@record
class VerifyBody(Record):
    from_seq: int = 0


@record
class NewAgent(AgentSpec):
    """An AgentSpec, and `input` (base64) for a `stdin` that is a pipe: written to the first
    generation as it reads, then closed.
    """

    input: bytes | None = None


@record
class SignalBody(Record):
    generation: int
    signal: Signal


@record
class RunBody(Record):
    """`stdin` is base64."""

    spec: AgentSpec
    stdin: bytes = b""
    timeout_s: Annotated[float, schema_keywords(exclusiveMinimum=0, maximum=MAX_RUN_SECONDS)] = 600
    max_output: Annotated[int, number_range(0, MAX_OUTPUT)] = 1 << 20


@record
class Draining(Record):
    state: str


@record
class Applied(Record):
    """Changed key paths by apply class. Changes were applied only if all are `live`."""

    live: tuple[str, ...] = ()
    boot: tuple[str, ...] = ()
    recreate: tuple[str, ...] = ()
    rebuild: tuple[str, ...] = ()


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind
    for kind in (
        NewBead,
        ClaimBody,
        ClaimNextBody,
        HeartbeatBody,
        ReleaseBody,
        CloseBody,
        StoreBody,
        SearchBody,
        Hits,
        EventsBody,
        Appended,
        Head,
        VerifyBody,
        NewAgent,
        SignalBody,
        RunBody,
        Draining,
        Applied,
    )
}
