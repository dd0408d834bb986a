"""Records that belong to the API alone and to no slot: what the probes and tasks answer.

Reading is tolerant of members that are unknown here: an older client may meet a newer box.
"""

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

TaskState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
FINAL: frozenset[str] = frozenset({"succeeded", "failed", "cancelled"})


class Wire:
    """Gives a flat frozen dataclass its JSON form."""

    def to_wire(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_wire`; members unknown here are left out. Raises TypeError when one is missing."""
        field_names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in data.items() if name in field_names})


@dataclass(frozen=True, kw_only=True)
class Readiness(Wire):
    """The verdict of `/ready`: `missing` is empty exactly when `ready`."""

    ready: bool
    missing: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    boot_id: str = ""
    plan_digest: str = ""
    reason: str = ""

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        lists = {name: tuple(data.get(name, ())) for name in ("missing", "degraded")}
        return super().from_wire({**data, **lists})


@dataclass(frozen=True, kw_only=True)
class Submitted(Wire):
    """What submitting a task answers."""

    task_id: str
    state: TaskState


@dataclass(frozen=True, kw_only=True)
class Task(Wire):
    """A task: the bead that is its receipt, read as one run. Times are RFC 3339.

    `exit` is the exit record of its agent, null until it ended and where no agent ever ran; `note` says in a sentence
    what happened. `isolation` is what the sandbox enforced.
    """

    task_id: str
    state: TaskState
    name: str
    argv: tuple[str, ...]
    profile: str
    creator: str
    attempts: int
    timeout_s: float
    created_at: str
    closed_at: str | None
    agent_id: str | None
    exit: Mapping[str, Any] | None
    isolation: Mapping[str, Any] | None
    note: str

    @property
    def final(self) -> bool:
        """True when nothing changes any more."""
        return self.state in FINAL

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        return super().from_wire({**data, "argv": tuple(data["argv"])})


@dataclass(frozen=True, kw_only=True)
class LogItem:
    """One piece of an agent's output or life. `kind` is stdout, stderr, state or exit."""

    cursor: int
    kind: str
    data: bytes
    generation: int
    ts: str

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """From the wire form of a stream item."""
        return cls(
            cursor=data["cursor"],
            kind=data["kind"],
            data=base64.b64decode(data["data"]),
            generation=data["generation"],
            ts=data["ts"],
        )
