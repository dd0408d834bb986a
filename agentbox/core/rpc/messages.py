"""JSON-RPC 2.0, one UTF-8 line per message, shared by agent-host and its clients (O16 to O18)."""

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
)  # live keys of `[adapters.orchestrator]` that agent-host enforces
EVENT = "agent.event"

Message = Mapping[str, Any]


class InvalidMessage(AgentboxError):
    """An invalid JSON-RPC message. The connection cannot be used any more."""


def encode(message: Message) -> bytes:
    """Encodes a message, which may contain records."""
    return to_json({"jsonrpc": "2.0", **message}, ensure_ascii=True).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Decodes a line. Raises InvalidMessage."""
    try:
        message = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidMessage("cannot read a message: it is not JSON") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise InvalidMessage("cannot read a message: it is not JSON-RPC 2.0")
    return message


def object_member(message: Message, name: str) -> Mapping[str, Any]:
    """A member that must be an object. Raises InvalidMessage."""
    member = message.get(name)
    if not isinstance(member, Mapping):
        raise InvalidMessage(f"cannot read a message: {name} must be an object")
    return member


def encode_error(error: AdapterError) -> dict[str, Any]:
    """Encodes the member `error` of a reply."""
    data = {"code": error.code, "detail": error.message, "hint": error.hint, **error.members}
    return {"code": TYPED_ERROR, "message": error.message, "data": data}


def decode_error(reply: Message, impl: str = "local-process") -> AdapterError:
    """Decodes a member `error` to an exception; BackendError if its code is unknown."""
    data = reply.get("data")
    body: Mapping[str, Any] = (
        data if isinstance(data, Mapping) else {"detail": str(reply.get("message"))}
    )
    return from_problem({"slot": "orchestrator", "impl": impl, **body}, 502)
