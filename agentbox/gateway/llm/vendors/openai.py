"""Kind `openai`: chat completions, responses, completions, embeddings, models (the vendor's API
reference, 2026)."""

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
    count_at,
    forbidden_content,
    is_present,
    objects,
    positive_int,
    token_count,
    walk,
)

_POSTS: Final = (
    VendorCall(name="chat", path="/chat/completions", generates=True, counts_input=True),
    VendorCall(name="responses", path="/responses", generates=True, counts_input=True),
    VendorCall(name="completions", path="/completions", generates=True, counts_input=True),
    VendorCall(name="embeddings", path="/embeddings", counts_input=True),
)
_CALLS: Final = AllowedCalls(_POSTS, "/models", re.compile(r"[A-Za-z0-9._:@/-]{1,200}"))
# Tools that run at the agent; all others run at the provider.
_CLIENT_TOOLS: Final = (
    "function",
    "custom",
    "local_shell",
    "apply_patch",
    "computer_use_preview",
    "computer",
)
# Members that refer to stored objects or let the provider act: first the vendor's own, then those
# of compatible servers (searches, plugins, tool servers, other models and URLs).
_FORBIDDEN_MEMBERS: Final = (
    "previous_response_id",
    "conversation",
    "background",
    "web_search_options",
    "container",
    "search_parameters",
    "enable_search",
    "search_options",
    "plugins",
    "mcp_servers",
    "tool_resources",
    "fallbacks",
    "models",
    "api_base",
    "base_url",
    "api_key",
)
_TOP_LEVEL_MEMBERS: Final = frozenset(
    (
        *_FORBIDDEN_MEMBERS,
        "prompt",
        "store",
        "tools",
        "messages",
        "input",
        "model",
        "stream",
        "stream_options",
        "n",
        "best_of",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "service_tier",
    )
)
# Members that make a call cost more or less than the listed price.
_PRICED: Final = {"service_tier": ("auto", "default", "flex")}
_REFERENCE_MEMBERS: Final = ("file_id", "container_id", "server_url", "connector_id")
_ITEM_MEMBERS: Final = frozenset(
    (*_REFERENCE_MEMBERS, "type", "tools", "image_url", "file_url", "video_url", "audio_url")
)
_LAST_EVENTS: Final = ("response.completed", "response.incomplete", "response.failed")
_TYPES: Final = {
    "token": "authentication_error",
    "forbidden": "permission_error",
    "budget": "insufficient_quota",
}
_CODES: Final = {
    "token": "invalid_api_key",
    "forbidden": "not_allowed",
    "missing": "model_not_found",
    "budget": "insufficient_quota",
    "overloaded": "queue_full",
    "large": "request_too_large",
    "late": "timeout",
    "unavailable": "unavailable",
}


def find_call(method: str, path: str) -> VendorCall | None:
    """SDK base URLs may or may not end in /v1."""
    return _CALLS.find(method, path.removeprefix("v1/"))


def screen(call: VendorCall, body: dict[str, Any]) -> ScreenedBody:
    """Raises ModelGatewayError for hosted tools, stored objects and background jobs."""
    check_spelling(body, _TOP_LEVEL_MEMBERS)
    for name in (
        *_FORBIDDEN_MEMBERS,
        *(["prompt"] if call.name == "responses" else []),
    ):  # in completions it is the text itself
        if is_present(body.get(name)):
            raise forbidden_content(name)
    if call.name in ("chat", "responses"):
        body["store"] = False
    for tool in _flatten_tools(body.get("tools")):
        _check_tool(tool)
    screened = ScreenedBody()
    for name in ("messages", "input"):
        for item in walk(body.get(name), _opaque_members):
            _screen_item(item, screened)
    return screened


def _flatten_tools(value: Any) -> list[Mapping[str, Any]]:
    """All tools, including those of a group (`namespace`)."""
    flat: list[Mapping[str, Any]] = []
    for tool in objects(value):
        flat += _flatten_tools(tool.get("tools")) if tool.get("type") == "namespace" else [tool]
    return flat


def _check_tool(tool: Mapping[str, Any]) -> None:
    check_spelling(tool, ("type",))
    kind = tool.get("type")
    if kind not in _CLIENT_TOOLS:
        raise forbidden_content(f"the hosted tool {kind}")


def _opaque_members(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Members with tool input and output."""
    return ("arguments", "action", "operation") if "type" in item else ("arguments",)


def _screen_item(item: Mapping[str, Any], screened: ScreenedBody) -> None:
    check_spelling(item, _ITEM_MEMBERS)
    kind = item.get("type")
    if kind == "item_reference":
        raise forbidden_content("item_reference")
    for name in _REFERENCE_MEMBERS:
        if item.get(name):
            raise forbidden_content(name)
    if kind == "additional_tools":  # tools within a conversation
        for tool in _flatten_tools(item.get("tools")):
            _check_tool(tool)
    for name, value in item.items():
        if not name.endswith("_url"):  # image, file, video, audio: servers differ
            continue
        url = value.get("url") if isinstance(value, dict) else value
        if url is not None:
            screened.urls.append(str(url))


def max_output(call: VendorCall, body: dict[str, Any]) -> int | None:
    """Raises ModelGatewayError for an invalid cap."""
    caps = [n for name in _cap_members(call) if (n := positive_int(body, name)) is not None]
    return max(caps, default=None)


def _cap_members(call: VendorCall) -> tuple[str, ...]:
    if call.name == "responses":
        return ("max_output_tokens",)
    return ("max_completion_tokens", "max_tokens") if call.name == "chat" else ("max_tokens",)


def set_max_output(call: VendorCall, body: dict[str, Any], tokens: int) -> None:
    """Sets the members present in the body; the vendor's current one if none is."""
    names = [name for name in _cap_members(call) if body.get(name) is not None] or [
        _cap_members(call)[0]
    ]
    for name in names:
        body[name] = tokens


def choices(body: dict[str, Any]) -> int:
    """`n`, and `best_of` of completions, which generates more than it returns. Raises
    ModelGatewayError."""
    return max(positive_int(body, "n") or 1, positive_int(body, "best_of") or 1)


def request_usage(call: VendorCall, body: dict[str, Any]) -> bool:
    """Streams of chat and completions include usage only if requested. Raises ModelGatewayError."""
    if call.name not in ("chat", "completions"):
        return False
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise ModelGatewayError("invalid", "stream_options must be an object")
    already_requested = bool(options.get("include_usage"))
    # Intermediate totals of some servers would look like the final one.
    other_options = {
        name: value for name, value in options.items() if name != "continuous_usage_stats"
    }
    body["stream_options"] = {**other_options, "include_usage": True}
    return not already_requested


def usage(document: Mapping[str, Any]) -> Usage | None:
    """Usage of a response, a chunk, or a responses API event, whose final one contains the whole
    response. Some servers send a running total with every chunk, so that of a chunk is final only
    at the end of the stream."""
    inner = document.get("response")
    holder = inner if isinstance(inner, dict) else document
    reported = holder.get("usage")
    if not isinstance(reported, dict):
        return None
    input_tokens = token_count(reported.get("prompt_tokens", reported.get("input_tokens")))
    output_tokens = token_count(reported.get("completion_tokens", reported.get("output_tokens")))
    details = "prompt_tokens_details" if "prompt_tokens" in reported else "input_tokens_details"
    return Usage(
        input_tokens,
        output_tokens,
        cache_read=count_at(reported, details, "cached_tokens"),
        final=document.get("type") in _LAST_EVENTS,
        replaces=True,
    )


def is_usage_only(document: Mapping[str, Any]) -> bool:
    """The last chunk of a chat stream: usage without choices."""
    return document.get("choices") == [] and isinstance(document.get("usage"), dict)


def format_error(status: int, reason: Reason, message: str, _retry_after: float) -> bytes:
    """An error object of the vendor."""
    shape = {
        "message": message,
        "type": _TYPES.get(reason, "invalid_request_error" if status < 500 else "server_error"),
        "param": None,
        "code": _CODES.get(reason),
    }
    return json.dumps({"error": shape}).encode()


def auth_headers(key: str) -> tuple[tuple[bytes, bytes], ...]:
    """RFC 6750."""
    return ((b"authorization", b"Bearer " + key.encode()),) if key else ()


OPENAI: Final = VendorProtocol(
    find_call=find_call,
    screen=screen,
    max_output=max_output,
    choices=choices,
    set_max_output=set_max_output,
    request_usage=request_usage,
    usage=usage,
    is_usage_only=is_usage_only,
    last_usage_is_final=True,
    format_error=format_error,
    auth_headers=auth_headers,
    priced=_PRICED,
    headers=(b"openai-beta",),
    query_parameters=(),
    filter_models=filter_models,
)
