"""Responses of the probes as records, for OpenAPI and readers. The endpoints return plain data."""

from collections.abc import Mapping
from typing import Any

from agentbox.adapters.runtime.adapter import Page
from agentbox.api.auth.tokens import RECORDS as TOKEN_RECORDS
from agentbox.client.records import Submitted, Task
from agentbox.contracts.approvals import RECORDS as APPROVAL_RECORDS
from agentbox.contracts.beads import RECORDS as BEAD_RECORDS
from agentbox.contracts.beads import Bead
from agentbox.contracts.bodies import RECORDS as BODY_RECORDS
from agentbox.contracts.events import RECORDS as EVENT_RECORDS
from agentbox.contracts.memory import RECORDS as MEMORY_RECORDS
from agentbox.contracts.memory import MemoryEntry
from agentbox.contracts.mesh import RECORDS as MESH_RECORDS
from agentbox.contracts.mesh import MeshSession
from agentbox.contracts.orchestrator import RECORDS as AGENT_RECORDS
from agentbox.contracts.orchestrator import AgentInfo
from agentbox.contracts.reviews import RECORDS as REVIEW_RECORDS
from agentbox.contracts.states import RECORDS as STATE_RECORDS
from agentbox.contracts.tasks import TaskBody
from agentbox.core.records.wire import JsonObj, JsonValue, Record, record
from agentbox.mesh.outbox.outbox import RECORDS as OUTBOX_RECORDS


@record
class Live(Record):
    """The process answers. `uptime` is in seconds."""

    live: bool
    uptime: float


@record
class Ready(Record):
    """The cached readiness. 200 has `since`, `requirements` and `evidence`; 503 has `reason` and
    `missing`.
    """

    ready: bool
    degraded: tuple[str, ...]
    boot_id: str
    plan_digest: str
    checked_at: str
    since: str | None = None
    requirements: tuple[str, ...] = ()
    evidence: JsonObj | None = None
    reason: str = ""
    missing: tuple[str, ...] = ()


@record
class SlotHealth(Record):
    state: str
    impl: str
    required: bool
    since: str
    detail: str = ""


@record
class ImageInfo(Record):
    """`digest` is null if the reference has none."""

    ref: str
    digest: str | None
    revision: str | None
    closure_digest: str | None


@record
class HealthReport(Record):
    """The state of each part, for people."""

    status: str
    uptime: float
    version: str
    image: ImageInfo
    adapters: Mapping[str, SlotHealth]
    degraded_count: int
    mesh: JsonObj
    programs: Mapping[str, str]
    artifacts: JsonObj
    posture: JsonObj
    protections_absent: tuple[str, ...]
    dev: bool
    note: str


@record
class SlotContract(Record):
    impl: str
    required: bool
    contract_version: str
    capabilities: tuple[str, ...]


@record
class Meta(Record):
    """Identity and configuration of this box."""

    name: str
    version: str
    image: ImageInfo
    manifest_digest: str
    plan_digest: str
    lock_digest: str
    system: str
    mesh: JsonObj
    adapters: Mapping[str, SlotContract]
    observability: JsonObj
    security: JsonObj
    boot: JsonObj
    api_versions: tuple[str, ...]


@record
class BootReport(Record):
    """Record, phases, events and sentinel of this boot; null or empty until written. `timeline` is
    that of the requested boot (default: the newest), `history` has all stored boots, `broken` a
    message for each invalid link of the sentinel chain.
    """

    record: JsonObj | None
    phases: tuple[JsonValue, ...]
    events: tuple[JsonValue, ...]
    sentinel: JsonObj | None
    timeline: JsonObj | None
    history: tuple[JsonValue, ...]
    broken: tuple[str, ...]


@record
class Problem(Record):
    """RFC 9457. `code` identifies the error, which may have members of its own."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    retryable: bool


@record
class PageTask(Record):
    """A page of tasks."""

    items: tuple[Task, ...]
    next_cursor: str | None = None


RECORDS_BY_NAME: Mapping[str, Any] = {
    **BEAD_RECORDS,
    **MEMORY_RECORDS,
    **EVENT_RECORDS,
    **AGENT_RECORDS,
    **BODY_RECORDS,
    **TOKEN_RECORDS,
    **MESH_RECORDS,
    **OUTBOX_RECORDS,
    **REVIEW_RECORDS,
    **APPROVAL_RECORDS,
    **STATE_RECORDS,
    **{
        kind.__name__: kind
        for kind in (
            Live,
            Ready,
            HealthReport,
            Meta,
            BootReport,
            Problem,
            TaskBody,
            Task,
            Submitted,
        )
    },
    "Page[Bead]": Page[Bead],
    "Page[AgentInfo]": Page[AgentInfo],
    "Page[Task]": PageTask,
    "Page[MemoryEntry]": Page[MemoryEntry],
    "Page[MeshSession]": Page[MeshSession],
}
