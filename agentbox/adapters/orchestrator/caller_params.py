"""The caller of an operation on the wire: whoever acts reaches agent-host with the call."""

from collections.abc import Mapping
from typing import Any

from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.context import CallContext, TaskSubmission
from agentbox.core.records.wire import from_wire


def current_caller() -> dict[str, Any]:
    """The members of `params` that describe the current caller."""
    caller = context.current()
    params: dict[str, Any] = {
        "principal": caller.principal,
        "admin": "admin" in caller.scopes,
        "session_id": caller.session_id or "",
        "trace_id": caller.trace_id or "",
    }
    if (task := caller.submission) is not None:
        params |= {
            "submitter": task.principal,
            "submitter_admin": task.admin,
            "state_id": task.state_id,
        }
    return params


def caller_of(params: Mapping[str, Any], program: str = "") -> CallContext:
    """The inverse; what is absent is empty. A `program` acts for its callers without their rights:
    nobody is admin, and it starts no tasks. Raises ValidationError."""
    text = {
        name: from_wire(str, params.get(name, ""))
        for name in ("principal", "session_id", "trace_id", "submitter", "state_id")
    }
    if program:
        return CallContext(
            principal=text["principal"],
            session_id=text["session_id"] or None,
            trace_id=text["trace_id"] or None,
            program=program,
        )
    return CallContext(
        principal=text["principal"],
        scopes=frozenset({"admin"}) if params.get("admin") is True else frozenset(),
        session_id=text["session_id"] or None,
        trace_id=text["trace_id"] or None,
        submission=TaskSubmission(
            principal=text["submitter"],
            admin=params.get("submitter_admin") is True,
            state_id=text["state_id"],
        ),
    )
