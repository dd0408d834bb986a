"""Kind `anthropic`: messages, count_tokens, models (the vendor's API reference, 2026)."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from agentbox.gateway.llm.allowed_calls import AllowedCalls, filter_models
from agentbox.gateway.llm.vendor_protocol import (
    ModelGatewayError,
    Reason,
    ScreenedBody,
    Usage,
    VendorCall,
    VendorProtocol,
    check_spelling,
    forbidden_content,
    is_present,
    objects,
    positive_int,
    token_count,
    walk,
)

_POSTS: Final = (
    VendorCall(name="messages", path="/v1/messages", generates=True, counts_input=True),
    VendorCall(name="count_tokens", path="/v1/messages/count_tokens"),
)
# The vendor's base URL has no path.
_CALLS: Final = AllowedCalls(_POSTS, "/v1/models", re.compile(r"[A-Za-z0-9._:@-]{1,200}"))
# The vendor's tools that run at the agent, by the prefix of their dated types.
_CLIENT_TOOLS: Final = ("custom", "bash_", "text_editor_", "computer_", "memory_")
_TOP_LEVEL_MEMBERS: Final = frozenset(
    (
        "mcp_servers",
        "container",
        "tools",
        "messages",
        "system",
        "model",
        "stream",
        "max_tokens",
        "thinking",
        "service_tier",
        "speed",
        "inference_geo",
    )
)
# Members that make a call cost more or less than the listed price.
_PRICED: Final = {
    "service_tier": ("auto", "standard_only"),
    "speed": ("standard",),
    "inference_geo": ("global",),
}
_FORBIDDEN_BLOCKS: Final = ("container_upload", "mcp_tool_use", "mcp_tool_result")
_TYPES: Final = {
    "invalid": "invalid_request_error",
    "token": "authentication_error",
    "forbidden": "permission_error",
    "missing": "not_found_error",
    "large": "request_too_large",
    "budget": "rate_limit_error",
    "overloaded": "overloaded_error",
    "late": "timeout_error",
}


def screen(_call: VendorCall, body: dict[str, Any]) -> ScreenedBody:
    """Raises ModelGatewayError for hosted tools, MCP servers, containers and stored files."""
    check_spelling(body, _TOP_LEVEL_MEMBERS)
    for name in ("mcp_servers", "container"):
        if is_present(body.get(name)):
            raise forbidden_content(name)
    for tool in objects(body.get("tools")):
        check_spelling(tool, ("type",))
        kind = tool.get("type") or "custom"
        if not isinstance(kind, str) or not kind.startswith(_CLIENT_TOOLS):
            raise forbidden_content(f"the hosted tool {kind}")
    screened = ScreenedBody()
    for name in ("messages", "system"):
        for block in walk(body.get(name), _opaque_members):
            _screen_block(block, screened)
    return screened


def _opaque_members(block: Mapping[str, Any]) -> tuple[str, ...]:
    return ("input",) if block.get("type") == "tool_use" else ()


def _screen_block(block: Mapping[str, Any], screened: ScreenedBody) -> None:
    check_spelling(block, ("type", "url", "file_id"))
    kind = block.get("type")
    if kind in _FORBIDDEN_BLOCKS:
        raise forbidden_content(str(kind))
    if block.get("file_id"):
        raise forbidden_content("file_id")
    if kind == "url" and "url" in block:  # the source of an image or a document
        screened.urls.append(str(block["url"]))


def max_output(_call: VendorCall, body: dict[str, Any]) -> int | None:
    """Raises ModelGatewayError for an invalid cap."""
    return positive_int(body, "max_tokens")


def set_max_output(_call: VendorCall, body: dict[str, Any], tokens: int) -> None:
    """Raises ModelGatewayError if the remaining tokens do not cover the requested thinking, which
    the provider would reject."""
    thinking = body.get("thinking")
    planned = token_count(thinking.get("budget_tokens")) if isinstance(thinking, dict) else None
    if planned is not None and planned >= tokens:
        raise ModelGatewayError(
            "budget",
            f"thinking.budget_tokens is {planned}, but only {tokens} output tokens remain in "
            "the budget",
        )
    body["max_tokens"] = tokens


def choices(_body: dict[str, Any]) -> int:
    """Always one."""
    return 1


def request_usage(_call: VendorCall, _body: dict[str, Any]) -> bool:
    """Streams always include usage."""
    return False


def usage(document: Mapping[str, Any]) -> Usage | None:
    """Usage of a message, or of the events `message_start` and `message_delta`; cached input counts
    as input. Several `message_delta` may come: the one with the stop reason is the last."""
    inner = document.get("message")
    holder = inner if isinstance(inner, dict) else document
    reported = holder.get("usage")
    if not isinstance(reported, dict):
        return None
    counts = [
        _count(reported, f"{kind}input_tokens") for kind in ("", "cache_creation_", "cache_read_")
    ]
    input_tokens = (
        sum(n for n in counts if n is not None) if any(n is not None for n in counts) else None
    )
    delta = document.get("delta")
    is_last = isinstance(delta, dict) and bool(delta.get("stop_reason"))
    return Usage(
        input_tokens,
        _count(reported, "output_tokens"),
        cache_read=_count(reported, "cache_read_input_tokens") or 0,
        cache_write=_count(reported, "cache_creation_input_tokens") or 0,
        final=is_last or document.get("type") == "message",
    )


def _count(reported: Mapping[str, Any], name: str) -> int | None:
    """The larger of the total and the sum over the passes of a call that compacts its context: the
    total may leave passes out."""
    rows = reported.get("iterations")
    counts = [
        token_count(row.get(name))
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
    ]
    passes = [count for count in counts if count is not None]
    total = token_count(reported.get(name))
    return max(sum(passes), total or 0) if passes else total


def is_usage_only(_document: Mapping[str, Any]) -> bool:
    """No event is usage-only."""
    return False


def format_error(status: int, reason: Reason, message: str, _retry_after: float) -> bytes:
    """An error object of the vendor."""
    kind = _TYPES.get(reason, "invalid_request_error" if status < 500 else "api_error")
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


def auth_headers(key: str) -> tuple[tuple[bytes, bytes], ...]:
    """The vendor's authentication header."""
    return ((b"x-api-key", key.encode()),) if key else ()


ANTHROPIC: Final = VendorProtocol(
    find_call=_CALLS.find,
    screen=screen,
    max_output=max_output,
    choices=choices,
    set_max_output=set_max_output,
    request_usage=request_usage,
    usage=usage,
    is_usage_only=is_usage_only,
    last_usage_is_final=False,
    format_error=format_error,
    auth_headers=auth_headers,
    priced=_PRICED,
    headers=(b"anthropic-version", b"anthropic-beta"),
    query_parameters=("beta", "limit", "after_id", "before_id"),
    filter_models=filter_models,
)
