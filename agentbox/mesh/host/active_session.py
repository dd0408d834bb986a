"""In-memory state of sessions and token holders."""

from dataclasses import dataclass, field

from agentbox.contracts.mesh import MeshSession


@dataclass
class ActiveSession:
    """An active session: when its lease expires, and when each token expires (None: with the
    session)."""

    session: MeshSession
    expires_at: float
    tokens: dict[bytes, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class TokenHolder:
    """The holder of a session token. `reason` is set once the session has ended."""

    session_id: str
    instance_id: str = ""
    scopes: frozenset[str] = frozenset()
    reason: str = ""
