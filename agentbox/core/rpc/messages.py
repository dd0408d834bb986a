"""JSON-RPC 2.0, one UTF-8 line a message: what agent-host and its clients share (O16 to O18)."""

import json
from collections.abc import Mapping
from typing import Any

from agentbox.core.errors import AgentboxError
from agentbox.core.records.wire import to_json
from agentbox.core.slot_errors import AdapterError, from_problem

LINE_LIMIT = 32 << 20  # bytes of one message: two streams of the largest `max_output`, in base64
TYPED_ERROR = -32000  # `data.code` is a code of `core/slot_errors.py`
INVALID_REQUEST, INTERNAL = -32600, -32603
CANCEL = "$/cancel"
LIVE_LIMITS = (
    "max_agents",
    "max_depth",
    "grace_seconds",
)  # live keys of `[adapters.orchestrator]` that agent-host holds
EVENT = "agent.event"

Message = Mapping[str, Any]


class InvalidMessage(AgentboxError):
    """A line that is no JSON-RPC message. The connection that carried it is of no more use."""


def encode(message: Message) -> bytes:
    """The line of a message, which may hold records."""
    return to_json({"jsonrpc": "2.0", **message}, ensure_ascii=True).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """The message of a line. Raises Garbage."""
    try:
        message = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidMessage("cannot read a message: it is not JSON") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise InvalidMessage("cannot read a message: it is not JSON-RPC 2.0")
    return message


def object_member(message: Message, name: str) -> Mapping[str, Any]:
    """A member that must be an object. Raises Garbage."""
    member = message.get(name)
    if not isinstance(member, Mapping):
        raise InvalidMessage(f"cannot read a message: {name} is no object")
    return member


def encode_error(error: AdapterError) -> dict[str, Any]:
    """The member `error` of a reply."""
    data = {"code": error.code, "detail": error.message, "hint": error.hint, **error.members}
    return {"code": TYPED_ERROR, "message": error.message, "data": data}


def decode_error(reply: Message, impl: str = "local-process") -> AdapterError:
    """The exception that a member `error` stands for; BackendError when it is none of ours."""
    data = reply.get("data")
    body: Mapping[str, Any] = (
        data if isinstance(data, Mapping) else {"detail": str(reply.get("message"))}
    )
    error = from_problem({"slot": "orchestrator", "impl": impl, **body}, 502)
    error.hint = str(body.get("hint", ""))
    return error
