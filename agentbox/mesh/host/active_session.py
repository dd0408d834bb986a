"""What a host holds in memory of its sessions, and of who calls with a token of one."""

from dataclasses import dataclass, field

from agentbox.contracts.mesh import MeshSession


@dataclass
class ActiveSession:
    """An active session: when its lease is over, and until when each of its tokens counts (None: as long as it lives)."""

    session: MeshSession
    expires_at: float
    tokens: dict[bytes, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class TokenHolder:
    """Who holds a session's token. `reason` is set once the session is over."""

    session_id: str
    instance_id: str = ""
    scopes: frozenset[str] = frozenset()
    reason: str = ""
