"""The roles of users, and the scopes of each. Roles are code: no manifest key changes them."""

from collections.abc import Collection, Mapping
from typing import Final, Literal, get_args

Role = Literal["viewer", "auditor", "reviewer", "operator", "admin"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

_VIEWER: Final = frozenset({"beads:read", "agents:read", "approvals:read", "config:read"})
_REVIEWER: Final = _VIEWER | {"reviews:write", "approvals:write", "events:read"}
_OPERATOR: Final = _REVIEWER | {
    "agents:write",
    "beads:write",
    "pods:read",
    "pods:write",
    "memory:read",
    "memory:write",
    "backups:write",
}
SCOPES_OF: Final[Mapping[Role, frozenset[str]]] = {
    "viewer": _VIEWER,
    "auditor": _VIEWER | {"events:read", "audit:read", "backups:read"},
    "reviewer": _REVIEWER,
    "operator": _OPERATOR,
    "admin": frozenset({"admin"}),
}


def includes(scopes: Collection[str], scope: str) -> bool:
    """Whether scopes that can be assigned include another one that can be assigned."""
    return scope in scopes or "admin" in scopes
