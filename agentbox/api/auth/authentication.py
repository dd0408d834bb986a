"""Authentication of callers: the admin token, and one token per boot for each core program."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentbox.contracts.roles import Role
from agentbox.core.http.problems import Unauthenticated
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import PermissionDenied
from agentbox.plan.names import AGENT_HOST, GATEWAY

CORE_PROGRAMS = (AGENT_HOST, GATEWAY)
OPERATOR = "urn:agentbox:operator"
_NEVER_CORE = frozenset(
    {
        "admin",
        "reviews:write",
        "approvals:write",
        "mesh:admin",
        "users:admin",
        "session:self",
        "audit:read",
        "config:read",
    }
)
_RULE = "send the header Authorization: Bearer <token>"


@dataclass(frozen=True)
class Caller:
    """A principal and its scopes. The empty principal is an anonymous caller, who may use public
    routes.

    A token may restrict them: to a prefix of pod paths and of memory namespaces, to one source of
    events.
    """

    principal: str = ""
    scopes: frozenset[str] = frozenset()
    pod_prefix: str = ""
    memory_prefix: str = ""
    event_source: str = ""
    rate: int = 0  # requests per second; 0 = unlimited
    # instance id of the box that calls with its mesh session, for itself and its own callers
    box: str = ""
    session: str = ""  # id of that session
    origin_box: str = ""  # name of the box whose journal a named token may deliver
    agent_id: str = ""  # of the agent for which the gateway calls
    session_id: str = ""  # of that agent's run
    trace_id: str = ""
    token_id: str = ""  # of a named token
    user: str = ""  # the name of the user whose token or session it is
    role: Role | Literal[""] = ""  # of that user
    login_id: str = ""  # id of the session of a person
    agent_name: str = ""  # its name in [agents]; "" for an ad-hoc program, which gets no beads

    @property
    def journal_box(self) -> str:
        """The box whose journal the caller may deliver here (V16); "" = none."""
        return self.box or self.origin_box

    def has_scope(self, scope: str) -> bool:
        """`admin` includes every scope but `core`; `core` all but those for people only.
        `mesh:session` is never implied; `token:self` is held by named tokens only, `session:self`
        by sessions, users and admins.
        """
        if scope in self.scopes:
            return True
        if scope in ("mesh:session", "token:self"):
            return scope == "token:self" and bool(self.token_id)
        if scope == "session:self" and (self.user or self.login_id):
            return True
        if "admin" in self.scopes:
            return scope != "core"
        return "core" in self.scopes and scope not in _NEVER_CORE


ANONYMOUS = Caller()


ADMIN = Caller(OPERATOR, frozenset({"admin"}), role="admin")
ENROLMENT = Caller("urn:agentbox:mesh:enrolment", frozenset({"mesh:join"}))
CallerLookup = Callable[[bytes], Caller | None]
# Raises PermissionDenied for a value of an argument that the caller may not use.
Check = Callable[[Caller, Any], Awaitable[None]]


def _find_none(_sha256: bytes) -> Caller | None:
    return None


class Authenticator:
    """The credentials of this boot. Tokens are stored as SHA-256 and compared in constant time."""

    def __init__(
        self,
        paths: Paths,
        admin_token: str,
        token_callers: CallerLookup = _find_none,
        *,
        sessions: CallerLookup = _find_none,
        ended_sessions: CallerLookup = _find_none,
        enrolment: str = "",
    ) -> None:
        """`token_callers` finds the caller of a named token by its SHA-256, `sessions` that of a
        mesh session, `ended_sessions` that of one that has ended. `enrolment` is the token with
        which boxes join; "" accepts none.
        """
        self._paths, self._lookups, self._ended_sessions = (
            paths,
            (token_callers, sessions),
            ended_sessions,
        )
        self._static = [(_digest(admin_token), ADMIN)]
        if enrolment:
            self._static.append((_digest(enrolment), ENROLMENT))
        self._core: dict[Path, tuple[int, bytes]] = {}

    def authenticate(self, authorization: str | None, *, include_ended: bool = False) -> Caller:
        """The caller with that header. Raises Unauthenticated when it is absent, of another scheme,
        or unknown. `include_ended` also accepts the token of an ended session, so that its box can
        get the reason.
        """
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthenticated("cannot serve this route: no bearer token was sent", rule=_RULE)
        token_digest = _digest(token.strip())
        candidates = [*self._static, *self._core_tokens()]
        caller = next(
            (
                candidate
                for digest, candidate in candidates
                if hmac.compare_digest(digest, token_digest)
            ),
            None,
        )
        for lookup in (*self._lookups, *((self._ended_sessions,) if include_ended else ())):
            caller = caller or lookup(token_digest)
        if caller is None:
            raise Unauthenticated(
                "cannot serve this route: the token is unknown, revoked or expired", rule=_RULE
            )
        return caller

    def _core_tokens(self) -> list[tuple[bytes, Caller]]:
        """Read again when a file changed: a program may start after the API."""
        digests = (
            (program, self._core_digest(self._paths.token(program))) for program in CORE_PROGRAMS
        )
        return [
            (digest, Caller(f"urn:agentbox:program:{program}", frozenset({"core"})))
            for program, digest in digests
            if digest is not None
        ]

    def _core_digest(self, path: Path) -> bytes | None:
        try:
            modified_ns = path.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        if path not in self._core or self._core[path][0] != modified_ns:
            self._core[path] = (modified_ns, hashlib.sha256(path.read_bytes().strip()).digest())
        return self._core[path][1]


def require(caller: Caller, scopes: Sequence[str]) -> None:
    """Raises PermissionDenied naming the first scope that the caller lacks."""
    for scope in scopes:
        if not caller.has_scope(scope):
            raise PermissionDenied(
                f"cannot serve this route: the token lacks the scope {scope}", scope=scope
            )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
