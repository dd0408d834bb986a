"""In-memory state of sessions and token holders."""

from dataclasses import dataclass, field

from agentbox.contracts.mesh import MeshSession, Registration
from agentbox.core import clock
from agentbox.core.ids import uuid7


@dataclass
class ActiveSession:
    """An active session: when its lease expires, and when each token expires (None: with the
    session)."""

    session: MeshSession
    expires_at: float
    tokens: dict[bytes, float | None] = field(default_factory=dict)

    def is_valid(self, sha256: bytes, now: float) -> bool:
        """Whether the token with this hash is one of the session's, and has not expired."""
        if sha256 not in self.tokens:
            return False
        expires_at = self.tokens[sha256]
        return expires_at is None or expires_at > now


@dataclass(frozen=True)
class TokenHolder:
    """The holder of a session token. `reason` is set once the session has ended."""

    session_id: str
    instance_id: str = ""
    scopes: frozenset[str] = frozenset()
    reason: str = ""


def new_session(
    registration: Registration, principal: str, resumed: MeshSession | None
) -> MeshSession:
    """The session of a registration; it has the id and the beginning of the one that it resumes."""
    return MeshSession(
        id=resumed.id if resumed else uuid7(),
        instance_id=registration.instance_id,
        boot_id=registration.boot_id,
        principal=principal,
        image_hash=registration.image_hash,
        plan_digest=registration.plan_digest,
        posture_digest=registration.posture_digest,
        contracts=registration.contracts,
        impls=registration.impls,
        did=registration.did,
        api_base=registration.api_base,
        opened_at=resumed.opened_at if resumed else clock.now(),
    )
