"""Records of the API that belong to no slot: probes and tasks.

Unknown members are ignored when reading: an older client may talk to a newer box.
"""

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

TaskState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
FINAL: frozenset[str] = frozenset({"succeeded", "failed", "cancelled"})


class Wire:
    """JSON conversion for a flat frozen dataclass."""

    def to_wire(self) -> dict[str, Any]:
        """Returns plain JSON data."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_wire`; ignores unknown members. Raises TypeError if one is missing."""
        field_names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in data.items() if name in field_names})


@dataclass(frozen=True, kw_only=True)
class Readiness(Wire):
    """The state of `/ready`: `missing` is empty exactly if `ready`."""

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
    """The response to a submitted task."""

    task_id: str
    state: TaskState


@dataclass(frozen=True, kw_only=True)
class Task(Wire):
    """A task: the bead that records it, read as one run. Times are RFC 3339.

    `exit` is the exit record of its agent, null until it ended or if no agent ran; `note` describes
    the outcome. `isolation` is what the sandbox enforced.
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
        """Whether the task has reached a final state."""
        return self.state in FINAL

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        return super().from_wire({**data, "argv": tuple(data["argv"])})


@dataclass(frozen=True, kw_only=True)
class LogItem:
    """One item of an agent's output or lifecycle. `kind` is stdout, stderr, state or exit."""

    cursor: int
    kind: str
    data: bytes
    generation: int
    ts: str

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """Parses a stream item."""
        return cls(
            cursor=data["cursor"],
            kind=data["kind"],
            data=base64.b64decode(data["data"]),
            generation=data["generation"],
            ts=data["ts"],
        )
