"""Rows of the store: what session-host must know after it was killed."""

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Self

from agentbox.contracts.sessions import (
    PermissionOption,
    PermissionRequest,
    Session,
    SessionState,
    SessionUsage,
)
from agentbox.core import clock
from agentbox.core.frozen import frozen
from agentbox.sessions.lines import Place


@dataclass(kw_only=True)
class StoredSession:
    """One session. `program`: number of the agent's program in the sandbox, 0 without one. `place`:
    where its output is read on. `written`: bytes of its standard input that agent-host has taken.
    `calls`: requests made so far, to number them. `capabilities`: as the agent told them. `asked`:
    times (Unix seconds) of the permissions of the last hour. `text_bytes`: size of the stored
    transcript. `dropped`: cursor of the newest item whose body is gone. `loading`: updates repeat
    what is stored, while the agent loads its session. `cancelled`: the turn under way is.
    `has_sandbox`: its sandbox is not known to be sealed.
    """

    session_id: str
    name: str
    agent: str
    principal: str
    cwd: str
    created_at: str
    updated_at: str
    state: SessionState = "starting"
    sandbox_id: str = ""
    program: int = 0
    inner_id: str = ""
    generation: int = 0
    turn: int = 0
    head: int = 0
    calls: int = 0
    written: int = 0
    place: tuple[int, int] = (0, 0)
    title: str = ""
    reason: str = ""
    loading: bool = False
    stopping: str = ""  # why the agent stopped, until the client is told
    changed: dict[str, Any] = field(default_factory=lambda: {"total": 0, "paths": []})
    cancelled: bool = False
    has_sandbox: bool = False
    history_due: bool = False  # the next prompt carries the end of the transcript
    text_bytes: int = 0
    dropped: int = 0
    prompts: int = 0
    updates: int = 0
    tokens: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    capabilities: dict[str, Any] = field(default_factory=dict)
    modes: dict[str, Any] = field(default_factory=dict)
    config: list[dict[str, Any]] = field(default_factory=list)
    commands: list[dict[str, Any]] = field(default_factory=list)
    permissions: list[dict[str, Any]] = field(default_factory=list)
    allowed_kinds: list[str] = field(default_factory=list)  # "always", for this session
    asked: list[float] = field(default_factory=list)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Members of a newer release are left out."""
        row = json.loads(text)
        known = {name: row[name] for name in cls.__dataclass_fields__ if name in row}
        return cls(**{**known, "place": tuple(known.get("place", (0, 0)))})

    def dump(self) -> str:
        """The row."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @property
    def is_open(self) -> bool:
        """Whether it can still be prompted."""
        return self.state not in ("closed", "failed")

    @property
    def has_program(self) -> bool:
        """Whether its agent is there, or starts."""
        return self.state in ("starting", "idle", "busy")

    @property
    def read_from(self) -> Place:
        """Where its output is read on."""
        return Place(*self.place)

    def touch(self) -> None:
        """It has changed now."""
        self.updated_at = clock.to_wire(clock.now())

    def describe(self) -> Session:
        """As clients see it."""
        return Session(
            session_id=self.session_id,
            name=self.name,
            agent=self.agent,
            state=self.state,
            principal=self.principal,
            cwd=self.cwd,
            created_at=clock.from_wire(self.created_at),
            updated_at=clock.from_wire(self.updated_at),
            sandbox_id=self.sandbox_id,
            inner_id=self.inner_id,
            title=self.title,
            generation=self.generation,
            turn=self.turn,
            head=self.head,
            reason=self.reason,
            labels=self.labels,
            permissions=tuple(describe_permission(row) for row in self.permissions),
            modes=self.modes,
            config=tuple(self.config),
            commands=tuple(self.commands),
            usage=SessionUsage(prompts=self.prompts, updates=self.updates, tokens=self.tokens),
        )


def describe_permission(row: dict[str, Any]) -> PermissionRequest:
    """A stored permission as clients see it."""
    return PermissionRequest(
        permission_id=row["permission_id"],
        tool_call_id=row["tool_call_id"],
        title=row["title"],
        options=tuple(PermissionOption(**option) for option in row["options"]),
        asked_at=_time(row["asked_at"]),
    )


def _time(text: str) -> datetime:
    return clock.from_wire(text)


@frozen
class StoredCall:
    """A request that was sent to an agent and is not answered. `n`: its id in the agent's
    connection. `turn`: that of a prompt. `editors`: who gets the answer: connection and the id of
    its request, as JSON."""

    session_id: str
    n: int
    method: str
    turn: int = 0


@dataclass(kw_only=True)
class StoredEditor:
    """The connection of one editor. `received`: messages taken from it; `sent`: messages to it so
    far. `ours`: requests made of it so far. `sessions`: ids of those that it has open."""

    connection_id: str
    principal: str
    scopes: list[str]
    agent: str = ""
    session: str = ""
    received: int = 0
    sent: int = 0
    ours: int = 0
    sessions: list[str] = field(default_factory=list)
    initialized: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Members of a newer release are left out."""
        row = json.loads(text)
        return cls(**{name: row[name] for name in cls.__dataclass_fields__ if name in row})

    def dump(self) -> str:
        """The row."""
        return json.dumps(asdict(self), separators=(",", ":"))
