"""Responses of the box itself as records, for OpenAPI and readers. The endpoints of probes return
plain data.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from agentbox.core.records.wire import JsonObj, JsonValue, Record, record


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
    """RFC 9457. `code` identifies the error, which may have members of its own. `hint` says what to
    do about it; absent if nothing is known.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    retryable: bool
    hint: str = ""


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


class ProbeEndpoints(Protocol):
    """What the API serves to probers, without a token."""

    async def livez(self) -> Live: ...

    async def ready(self) -> Ready: ...

    async def health(self) -> HealthReport: ...

    async def meta(self) -> Meta: ...

    async def metrics(self) -> str: ...


class BoxEndpoints(Protocol):
    """What the API serves about the box."""

    async def openapi(self) -> Mapping[str, Any]: ...

    async def boot(self, *, boot_id: str | None = None) -> BootReport: ...

    async def drain(self) -> Draining: ...

    async def apply(self) -> Applied: ...


class PageEndpoints(Protocol):
    """The HTML pages on the API's port."""

    async def serve(self, name: str) -> bytes: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind
    for kind in (Live, Ready, HealthReport, Meta, BootReport, Problem, Draining, Applied)
}
