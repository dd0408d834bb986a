"""Kind `anthropic`: messages, count_tokens, models (the vendor's API reference, 2026)."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from agentbox.gateway.llm.calls import Calls, keep_rows
from agentbox.gateway.llm.types import (
    Answer,
    Call,
    Kind,
    Reason,
    Screened,
    Usage,
    forbid,
    number,
    objects,
    positive,
    present,
    spelled,
    walk,
)

_POSTS: Final = (
    Call(name="messages", path="/v1/messages", generates=True, counts_input=True),
    Call(name="count_tokens", path="/v1/messages/count_tokens"),
)
# The base URL of this kind has no path of its own.
_CALLS: Final = Calls(_POSTS, "/v1/models", re.compile(r"[A-Za-z0-9._:@-]{1,200}"))
# Tools of the vendor's that the agent itself carries out, by the beginning of their dated types.
_OWN_TOOLS: Final = ("custom", "bash_", "text_editor_", "computer_", "memory_")
_TOP: Final = frozenset((
    "mcp_servers", "container", "tools", "messages", "system", "model", "stream", "max_tokens", "thinking",
))  # fmt: skip
_BLOCKS: Final = ("container_upload", "mcp_tool_use", "mcp_tool_result")
_TYPES: Final = {
    "invalid": "invalid_request_error", "token": "authentication_error", "forbidden": "permission_error",
    "missing": "not_found_error", "large": "request_too_large", "budget": "rate_limit_error",
    "overloaded": "overloaded_error", "late": "timeout_error",
}  # fmt: skip


def screen(_call: Call, body: dict[str, Any]) -> Screened:
    """Raises Answer for hosted tools, MCP servers, containers and files that the provider keeps."""
    spelled(body, _TOP)
    for name in ("mcp_servers", "container"):
        if present(body.get(name)):
            raise forbid(name)
    for tool in objects(body.get("tools")):
        spelled(tool, ("type",))
        kind = tool.get("type") or "custom"
        if not isinstance(kind, str) or not kind.startswith(_OWN_TOOLS):
            raise forbid(f"the hosted tool {kind}")
    found = Screened()
    for name in ("messages", "system"):
        for block in walk(body.get(name), _opaque):
            _block(block, found)
    return found


def _opaque(block: Mapping[str, Any]) -> tuple[str, ...]:
    return ("input",) if block.get("type") == "tool_use" else ()


def _block(block: Mapping[str, Any], found: Screened) -> None:
    spelled(block, ("type", "url", "file_id"))
    kind = block.get("type")
    if kind in _BLOCKS:
        raise forbid(str(kind))
    if block.get("file_id"):
        raise forbid("file_id")
    if kind == "url" and "url" in block:  # the source of an image or a document
        found.urls.append(str(block["url"]))


def wanted(_call: Call, body: dict[str, Any]) -> int | None:
    """Raises Answer for a cap that is no number."""
    return positive(body, "max_tokens")


def cap(_call: Call, body: dict[str, Any], tokens: int) -> None:
    """Raises Answer where what is left is less than the thinking that was asked for, which the provider would refuse."""
    thinking = body.get("thinking")
    planned = number(thinking.get("budget_tokens")) if isinstance(thinking, dict) else None
    if planned is not None and planned >= tokens:
        raise Answer(
            "budget", f"thinking.budget_tokens is {planned}, and {tokens} output tokens are left of the budget"
        )
    body["max_tokens"] = tokens


def answers(_body: dict[str, Any]) -> int:
    """Always one."""
    return 1


def ask_usage(_call: Call, _body: dict[str, Any]) -> bool:
    """Streams tell it unasked."""
    return False


def usage(document: Mapping[str, Any]) -> Usage | None:
    """Of a message, or of the events `message_start` and `message_delta`; what was read from a cache counts as input."""
    inner = document.get("message")
    holder = inner if isinstance(inner, dict) else document
    found = holder.get("usage")
    if not isinstance(found, dict):
        return None
    parts = [number(found.get(f"{kind}input_tokens")) for kind in ("", "cache_creation_", "cache_read_")]
    given = sum(n for n in parts if n is not None) if any(n is not None for n in parts) else None
    return Usage(given, number(found.get("output_tokens")), final=document.get("type") in ("message", "message_delta"))


def hidden(_document: Mapping[str, Any]) -> bool:
    """None is."""
    return False


def error(status: int, reason: Reason, message: str, _wait: float) -> bytes:
    """The vendor's error object."""
    kind = _TYPES.get(reason, "invalid_request_error" if status < 500 else "api_error")
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


def auth(key: str) -> tuple[tuple[bytes, bytes], ...]:
    """The vendor's own header."""
    return ((b"x-api-key", key.encode()),) if key else ()


ANTHROPIC: Final = Kind(
    find=_CALLS.find, screen=screen, wanted=wanted, answers=answers, cap=cap, ask_usage=ask_usage, usage=usage, hidden=hidden,
    error=error, auth=auth, headers=(b"anthropic-version", b"anthropic-beta"),
    query=("beta", "limit", "after_id", "before_id"), model_ids=keep_rows,
)  # fmt: skip
