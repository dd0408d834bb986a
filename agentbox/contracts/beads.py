"""The contract of the beads slot: work items, claims with a lease, dependencies, schedules."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, Protocol

from agentbox.contracts.arguments import PAGE_BOUNDS, Cursor, Id, PageSize
from agentbox.contracts.routes.operation import PRINCIPAL, sent_as, spread
from agentbox.core.records.bounds import bounded_text, item_count, number_range, schema_keywords
from agentbox.core.records.page import Page
from agentbox.core.records.wire import JsonObj, JsonValue, Record, record

CONTRACT_VERSION = "1.0.0"
Kind = Literal["epic", "task", "schedule"]
Status = Literal["open", "claimed", "closed"]
Outcome = Literal["done", "failed", "cancelled"]

MAX_TITLE = 512  # characters
MAX_DOCUMENT = 64 << 10  # bytes, of body, data and result each
MAX_TAGS = 32
MAX_TAG = 64  # characters
MAX_BLOCKERS = 256
MAX_DEPTH = 16
LEASE_SECONDS = (5, 3600)
LIMIT = PAGE_BOUNDS
PRIORITY = (0, 2**31 - 1)
ATTEMPTS = (1, 2**31 - 1)
DELAY_SECONDS = (0, 366 * 86400)

Name = Annotated[str, bounded_text(maximum=MAX_TITLE)]
Document = Annotated[str, bounded_text(maximum=MAX_DOCUMENT)]
Tags = Annotated[
    tuple[Annotated[str, bounded_text(maximum=MAX_TAG)], ...], item_count(maximum=MAX_TAGS)
]

BeadId = Annotated[Id, sent_as("id")]
BlockerId = Annotated[
    str, bounded_text(minimum=1, pattern=r"^(?!\.{1,2}$)"), sent_as("blocker")
]  # not a path segment that clients drop
IdPrefix = Annotated[str, bounded_text(minimum=1, maximum=36, pattern=r"^[0-9a-f-]+$")]
Principal = Annotated[str, PRINCIPAL]
LeaseId = Annotated[str, schema_keywords(format="uuid")]
LeaseSeconds = Annotated[int, number_range(*LEASE_SECONDS)]


@record
class BeadSpec(Record):
    """A new bead. `every` (5-field cron in UTC, or an ISO 8601 duration of 60 s or more) makes a
    schedule.
    """

    title: Name
    creator: Name
    body: Document = ""
    priority: Annotated[int, number_range(*PRIORITY)] = 5
    tags: Tags = ()
    data: JsonObj = field(default_factory=dict)
    dedup_key: Annotated[str | None, bounded_text(maximum=MAX_TITLE)] = None
    not_before: datetime | None = None
    every: str | None = None
    overlap: Literal["skip", "queue"] = "skip"
    max_attempts: Annotated[int, number_range(*ATTEMPTS)] = 5


@record
class Bead(BeadSpec):
    """A stored bead. Reads never return a lease id."""

    id: str
    kind: Kind
    parent_id: str | None
    status: Status
    assignee: str | None
    lease_expires_at: datetime | None
    outcome: Outcome | None
    note: str
    result: JsonValue
    blocked_by: tuple[str, ...]
    attempts: int
    revision: int
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None


@record
class Claim(Record):
    """A lease on a bead. Its id is the authorization to heartbeat, release and close."""

    bead: Bead
    lease_id: str
    expires_at: datetime


@record
class NewBead(BeadSpec):
    """A BeadSpec whose `creator` defaults to the caller; another creator needs the scope admin."""

    creator: Name = ""


@record
class BeadFilter(Record):
    """All fields that are set must match. `id_prefix`: the first characters of the id."""

    status: Status | None = None
    kind: Kind | None = None
    parent_id: str | None = None
    tag: str | None = None
    assignee: str | None = None
    creator: str | None = None
    id_prefix: IdPrefix | None = None


ALL = BeadFilter()


class Beads(Protocol):
    """The slot. Errors are those of `agentbox.core.slot_errors`, as specified by clauses
    B1 to B15.
    """

    async def create_epic(self, spec: BeadSpec) -> tuple[Bead, bool]:
        """The bead, and whether it was created (False = `dedup_key` hit)."""
        ...

    async def create_child(
        self, parent_id: Annotated[Id, sent_as("id")], spec: BeadSpec
    ) -> tuple[Bead, bool]: ...

    async def add_dep(self, bead_id: BeadId, blocker_id: BlockerId) -> None: ...

    async def remove_dep(self, bead_id: BeadId, blocker_id: BlockerId) -> None: ...

    async def claim(
        self,
        bead_id: BeadId,
        assignee: Principal,
        *,
        lease_id: LeaseId,
        lease_s: LeaseSeconds | None = None,
    ) -> Claim:
        """`lease_id` is a random UUID of the caller; `lease_s` None means the slot's
        `lease_seconds`.
        """
        ...

    async def claim_next(
        self,
        assignee: Principal,
        *,
        lease_id: LeaseId,
        lease_s: LeaseSeconds | None = None,
        parent_id: str | None = None,
        tags: Tags = (),
    ) -> Claim | None:
        """Limited to beads below `parent_id`, and with all of `tags`, if set."""
        ...

    async def heartbeat(
        self, bead_id: BeadId, lease_id: LeaseId, *, lease_s: LeaseSeconds | None = None
    ) -> Claim: ...

    async def release(
        self,
        bead_id: BeadId,
        lease_id: LeaseId,
        *,
        delay_s: Annotated[int, number_range(*DELAY_SECONDS)] = 0,
        note: Document = "",
    ) -> Bead: ...

    async def close_bead(
        self,
        bead_id: BeadId,
        *,
        outcome: Outcome = "done",
        note: Document = "",
        result: JsonValue = None,
        lease_id: LeaseId | None = None,
    ) -> Bead: ...

    async def ready(
        self, *, parent_id: str | None = None, limit: PageSize = 100, cursor: Cursor | None = None
    ) -> Page[Bead]: ...

    async def list(
        self,
        filter: Annotated[BeadFilter, spread()] = ALL,
        *,
        limit: PageSize = 100,
        cursor: Cursor | None = None,
    ) -> Page[Bead]: ...

    async def show(self, bead_id: BeadId) -> Bead: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (BeadSpec, Bead, Claim, BeadFilter)
}
