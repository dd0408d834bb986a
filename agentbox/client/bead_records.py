"""Bead and event records of the clients."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from agentbox.client.records import Wire


@dataclass(frozen=True, kw_only=True)
class Bead(Wire):
    """A work item. Times are RFC 3339. Lease ids are never included."""

    id: str
    kind: str
    parent_id: str | None
    title: str
    creator: str
    body: str
    priority: int
    tags: tuple[str, ...]
    data: Mapping[str, Any]
    dedup_key: str | None
    not_before: str | None
    every: str | None
    overlap: str
    max_attempts: int
    status: str
    assignee: str | None
    lease_expires_at: str | None
    outcome: str | None
    note: str
    result: Any
    blocked_by: tuple[str, ...]
    attempts: int
    revision: int
    created_at: str
    updated_at: str
    closed_at: str | None

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        lists = {name: tuple(data[name]) for name in ("tags", "blocked_by")}
        return super().from_wire({**data, **lists})


@dataclass(frozen=True, kw_only=True)
class BeadClaim(Wire):
    """A lease on a bead. Heartbeat, release and close require its `lease_id`."""

    bead: Bead
    lease_id: str
    expires_at: str

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        return super().from_wire({**data, "bead": Bead.from_wire(data["bead"])})


@dataclass(frozen=True, kw_only=True)
class Event(Wire):
    """An event of the journal. `origin`: its position in another box's journal; None for a local
    event."""

    seq: int
    id: str
    ts: str
    type: str
    source: str
    subject: str | None
    agent_id: str | None
    session_id: str | None
    trace_id: str | None
    data: Mapping[str, Any]
    prev_hash: str
    hash: str
    origin: Mapping[str, Any] | None = None
