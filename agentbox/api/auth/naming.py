"""Whose name stands on what a caller writes, and which event types are the core's own."""

import re
from typing import Final

from agentbox.api.http.call import Call
from agentbox.core.http.problems import invalid
from agentbox.core.slot_errors import PermissionDenied

# First words of event types that only core code and the scope `core` append: those in use, and those that a
# reader would take for the box's.
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
        "gateway",
        "grant",
        "health",
        "host",
        "identity",
        "journal",
        "limit",
        "limits",
        "mesh",
        "operator",
        "policy",
        "program",
        "readiness",
        "ready",
        "review",
        "sandbox",
        "secret",
        "security",
        "slot",
        "state",
        "supervisor",
        "system",
        "task",
        "token",
    )
)
_FIRST_SEGMENT: Final = re.compile(r"[^.]*")
_FIRST_WORD: Final = re.compile(r"[^._-]*")


def resolve_principal(call: Call, pointer: str, principal: object) -> str:
    """The principal of the caller, or another that an admin (or the core) named, or a box by its session of its own
    callers. Raises PermissionDenied."""
    if principal is None or principal == call.caller.principal:
        return call.caller.principal
    if not isinstance(principal, str):
        raise invalid(pointer, "must be a string")
    if call.caller.box and principal.startswith(f"{call.caller.principal}:"):
        return principal
    if not (call.caller.has_scope("admin") or call.caller.has_scope("core")):
        raise PermissionDenied(
            f"cannot act as {principal}: only the scope admin may name another", scope="admin"
        )
    return principal


def check_type(call: Call, pointer: str, kind: str) -> None:
    """Raises ValidationError when a caller without scope `core` appends an event of the core. An agent's may not look like
    one either: `box-ready` and `box_ready` are refused from it as `box.ready` is."""
    first = (_FIRST_WORD if call.caller.agent_id else _FIRST_SEGMENT).match(kind)
    assert first is not None, "both match the empty text"
    if first[0] in RESERVED and not call.caller.has_scope("core"):
        raise invalid(pointer, f"is of the core: callers may not append {kind}")
