"""Whose name stands on what a caller writes, and which event types are the core's own."""

from agentbox.adapters.errors import PermissionDenied
from agentbox.api.call import Call
from agentbox.api.problems import invalid

# Event types that only core code and the scope `core` append (slots.md 5).
RESERVED = (
    "agent.", "approval.", "bead.", "boot.", "gateway.", "identity.", "journal.", "limit.", "mesh.", "policy.",
    "review.", "sandbox.", "secret.", "slot.", "task.", "token.",
)  # fmt: skip


def own_or_admin(call: Call, pointer: str, named: object) -> str:
    """The principal of the caller, or another that an admin (or the core) named, or a box by its session of its own
    callers. Raises PermissionDenied."""
    if named is None or named == call.caller.principal:
        return call.caller.principal
    if not isinstance(named, str):
        raise invalid(pointer, "must be a string")
    if call.caller.box and named.startswith(f"{call.caller.principal}:"):
        return named
    if not (call.caller.holds("admin") or call.caller.holds("core")):
        raise PermissionDenied(f"cannot act as {named}: only the scope admin may name another", scope="admin")
    return named


def check_type(call: Call, pointer: str, kind: str) -> None:
    """Raises ValidationError when a caller without scope `core` appends an event of the core."""
    if kind.startswith(RESERVED) and not call.caller.holds("core"):
        raise invalid(pointer, f"is of the core: callers may not append {kind}")
