"""The principal recorded for a write, and the event types reserved for the core."""

import re
from typing import Final

from agentbox.api.auth.authentication import Caller
from agentbox.core.http.problems import invalid
from agentbox.core.slot_errors import PermissionDenied

# First words of event types that only core code and the scope `core` may append: those in use, and
# those that would look like the box's own.
RESERVED: Final = frozenset(
    (
        "agent",
        "agentbox",
        "agents",
        "api",
        "approval",
        "audit",
        "bead",
        "boot",
        "box",
        "budget",
        "canary",
        "config",
        "forge",
        "gateway",
        "goal",
        "grant",
        "health",
        "host",
        "identity",
        "journal",
        "limit",
        "limits",
        "mcp",
        "mesh",
        "message",
        "operator",
        "policy",
        "program",
        "readiness",
        "ready",
        "review",
        "sandbox",
        "secret",
        "security",
        "session",
        "slot",
        "state",
        "supervisor",
        "system",
        "task",
        "token",
        "tool",
        "trigger",
        "usage",
        "world",
    )
)
_FIRST_SEGMENT: Final = re.compile(r"[^.]*")
_FIRST_WORD: Final = re.compile(r"[^._-]*")


def resolve_principal(caller: Caller, pointer: str, principal: object) -> str:
    """The principal of the caller, or the one requested by an admin, by the core, or by a box
    session for its own callers. Raises PermissionDenied.
    """
    if principal is None or principal == caller.principal:
        return caller.principal
    if not isinstance(principal, str):
        raise invalid(pointer, "must be a string")
    if caller.box and principal.startswith(f"{caller.principal}:"):
        return principal
    if not (caller.has_scope("admin") or caller.has_scope("core")):
        raise PermissionDenied(
            f"cannot act as {principal}: only the scope admin may name another", scope="admin"
        )
    return principal


def check_type(caller: Caller, pointer: str, kind: str) -> None:
    """Raises ValidationError when a caller without scope `core` appends an event of the core. For
    agents look-alikes are rejected too: `box-ready` and `box_ready` like `box.ready`.
    """
    first = (_FIRST_WORD if caller.agent_id else _FIRST_SEGMENT).match(kind)
    assert first is not None, "both patterns match the empty text"
    if first[0] in RESERVED and not caller.has_scope("core"):
        raise invalid(pointer, f"is reserved for the core: callers may not append {kind}")
