"""Messages between box and mesh host, and their public state. Unknown members of received messages
are ignored.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Any, Literal, Protocol, TypeVar, get_args

from agentbox.contracts.arguments import Cursor, Id, PageSize
from agentbox.contracts.orchestrator import AgentState
from agentbox.core.records.bounds import schema_keywords
from agentbox.core.records.page import Page
from agentbox.core.records.wire import JsonObj, Record, from_wire, record

PROTOCOL = 1
OFFERED_SLOTS = (
    "beads",
    "pods",
    "events",
)  # slots that a session may offer; memory and orchestrator have their own peers
SECRET_BYTES = 32
R = TypeVar("R", bound=Record)

State = Literal["active", "evicted", "closed"]
# As published for the filter; a session's states are `State`, and no value is refused.
_PUBLISHED_STATES = schema_keywords(enum=list(get_args(AgentState)))


@record
class Registration(Record):
    """A request to join. `instance_secret` is 32 random bytes known to this box and its
    host only.
    """

    protocol: int
    instance_id: str
    instance_secret: bytes
    boot_id: str
    image_hash: str = ""
    plan_digest: str = ""
    posture_digest: str = ""
    contracts: Mapping[str, str] = field(default_factory=dict)
    impls: Mapping[str, str] = field(default_factory=dict)
    did: str = ""
    api_base: str = ""
    sent_at: datetime | None = None


@record
class Endpoint(Record):
    """The URL of a slot, and the implementation to reach it."""

    impl: str
    url: str


@record
class Registered(Record):
    """A session. `heartbeat_s` and `lease_s` are seconds; `token` is returned only once."""

    session_id: str
    resumed: bool
    token: str
    heartbeat_s: float
    lease_s: float
    contracts: Mapping[str, str]
    endpoints: Mapping[str, Endpoint]
    endpoints_rev: str
    host_time: datetime


@record
class Heartbeat(Record):
    """A heartbeat. `beat` increases; one that does not is ignored."""

    session_id: str
    beat: int
    health: Mapping[str, str] = field(default_factory=dict)
    ready: bool | None = None
    journal: JsonObj = field(default_factory=dict)
    outbox: JsonObj = field(default_factory=dict)
    sent_at: datetime | None = None


@record
class HeartbeatReply(Record):
    """The session is active. If `endpoints_rev` has changed, register again to get the current
    endpoints.
    """

    host_time: datetime
    endpoints_rev: str


@record
class Deregister(Record):
    """Ends a session."""

    session_id: str


@record
class Deregistered(Record):
    """The state of the session."""

    session_id: str
    state: State


@record
class MeshSession(Record):
    """A session as known by its host. `journal` and `outbox` are from the last heartbeat."""

    id: str
    instance_id: str
    boot_id: str
    principal: str
    image_hash: str
    plan_digest: str
    posture_digest: str
    contracts: Mapping[str, str]
    impls: Mapping[str, str]
    opened_at: datetime
    did: str = ""
    api_base: str = ""
    state: State = "active"
    reason: str = ""
    ended_at: datetime | None = None
    last_beat_at: datetime | None = None
    beat: int = 0
    health: Mapping[str, str] = field(default_factory=dict)
    ready: bool | None = None
    journal: JsonObj = field(default_factory=dict)
    outbox: JsonObj = field(default_factory=dict)


@record
class MeshStatus(Record):
    """`mode` is that of the manifest. A client has `state`, `host` and the rest; a host counts its
    sessions by state.
    """

    mode: str
    state: str
    since: datetime | None = None
    host: str = ""
    session_id: str | None = None
    instance_id: str = ""
    reason: str = ""
    last_beat_at: datetime | None = None
    skew_s: float | None = None
    outbox: JsonObj = field(default_factory=dict)
    mismatches: tuple[JsonObj, ...] = ()
    slots: Mapping[str, str] = field(default_factory=dict)
    sessions: Mapping[str, int] = field(default_factory=dict)


@record
class OutboxItem(Record):
    """A waiting result. `digest`: SHA-256 of the body in canonical JSON; `ref`: its spool entry."""

    id: str
    op: Literal["close", "release"]
    bead_id: str
    ref: str
    outcome: str
    digest: str
    size: int
    created_at: datetime


@record
class OutboxItems(Record):
    """All waiting results, oldest first."""

    items: tuple[OutboxItem, ...]


class MeshEndpoints(Protocol):
    """What the API serves for the mesh."""

    async def register(self, registration: Registration) -> Registered: ...

    async def heartbeat(self, beat: Heartbeat) -> HeartbeatReply: ...

    async def deregister(self, session: Deregister) -> Deregistered: ...

    async def list_sessions(
        self,
        *,
        state: Annotated[str | None, _PUBLISHED_STATES] = None,
        instance: str | None = None,
        image: str | None = None,
        limit: PageSize = 100,
        cursor: Cursor | None = None,
    ) -> Page[MeshSession]: ...

    async def show_session(self, id: Id) -> MeshSession: ...

    async def evict(self, id: Id) -> None: ...

    async def status(self) -> MeshStatus: ...

    async def join(self) -> MeshStatus: ...

    async def outbox(self) -> OutboxItems: ...

    async def drop(self, id: Id) -> None: ...


def decode_lenient(kind: type[R], data: Any) -> R:
    """Decodes a record, ignoring unknown members. Raises ValidationError for invalid ones."""
    return from_wire(kind, data, ignore_unknown=True)


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind
    for kind in (
        Registration,
        Registered,
        Heartbeat,
        HeartbeatReply,
        Deregister,
        Deregistered,
        MeshSession,
        MeshStatus,
        OutboxItem,
        OutboxItems,
    )
}
