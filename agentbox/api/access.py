"""Who calls, and what they may do: the admin token, and one token per boot for each program of the core."""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentbox.adapters.errors import PermissionDenied
from agentbox.api.problems import Unauthenticated
from agentbox.settings import Paths

CORE_PROGRAMS = ("agent-host", "gateway")
OPERATOR = "urn:agentbox:operator"
_NEVER_CORE = frozenset({"admin", "reviews:write", "approvals:write", "mesh:admin"})
_RULE = "send the header Authorization: Bearer <token>"


@dataclass(frozen=True)
class Caller:
    """A principal and its scopes. The empty principal is somebody unknown, who may use public routes.

    A token may narrow them: to pod paths and memory namespaces that start so, to one source of events.
    """

    principal: str = ""
    scopes: frozenset[str] = frozenset()
    pod_prefix: str = ""
    memory_prefix: str = ""
    event_source: str = ""
    rate: int = 0  # requests a second; 0 = any number

    def holds(self, scope: str) -> bool:
        """`admin` holds every scope but `core`; `core` all but those that only people may hold."""
        if scope in self.scopes:
            return True
        if "admin" in self.scopes:
            return scope != "core"
        return "core" in self.scopes and scope not in _NEVER_CORE


NOBODY = Caller()


def _nobody(_sha256: bytes) -> Caller | None:
    return None


class Access:
    """The credentials of this boot. Tokens are kept as SHA-256 and compared in constant time."""

    def __init__(self, paths: Paths, admin_token: str, named: Callable[[bytes], Caller | None] = _nobody) -> None:
        """`named` finds the caller of a named token by its SHA-256."""
        self._paths, self._named = paths, named
        self._admin = _digest(admin_token)
        self._core: dict[Path, tuple[int, bytes]] = {}

    def caller(self, authorization: str | None) -> Caller:
        """Who sent that header. Raises Unauthenticated when it is absent, of another scheme, or unknown."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise Unauthenticated("cannot serve this route: no bearer token was sent", rule=_RULE)
        given = _digest(token.strip())
        known = [(self._admin, Caller(OPERATOR, frozenset({"admin"}))), *self._core_tokens()]
        found = next((who for digest, who in known if hmac.compare_digest(digest, given)), None) or self._named(given)
        if found is None:
            raise Unauthenticated("cannot serve this route: the token is unknown, revoked or expired", rule=_RULE)
        return found

    def _core_tokens(self) -> list[tuple[bytes, Caller]]:
        """Read again when a file changed: a program may come up after the API did."""
        digests = ((program, self._core_digest(self._paths.token(program))) for program in CORE_PROGRAMS)
        return [
            (digest, Caller(f"urn:agentbox:program:{program}", frozenset({"core"})))
            for program, digest in digests
            if digest is not None
        ]

    def _core_digest(self, path: Path) -> bytes | None:
        try:
            changed = path.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        if path not in self._core or self._core[path][0] != changed:
            self._core[path] = (changed, _digest(path.read_text().strip()))
        return self._core[path][1]


def require(caller: Caller, scopes: Sequence[str]) -> None:
    """Raises PermissionDenied that names the first scope the caller lacks."""
    for scope in scopes:
        if not caller.holds(scope):
            raise PermissionDenied(f"cannot serve this route: the token lacks the scope {scope}", scope=scope)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
