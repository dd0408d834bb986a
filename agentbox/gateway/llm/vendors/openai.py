"""Kind `openai`: chat completions, responses, completions, embeddings, models (the vendor's API reference, 2026)."""

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
    Call(name="chat", path="/chat/completions", generates=True, counts_input=True),
    Call(name="responses", path="/responses", generates=True, counts_input=True),
    Call(name="completions", path="/completions", generates=True, counts_input=True),
    Call(name="embeddings", path="/embeddings", counts_input=True),
)
_CALLS: Final = Calls(_POSTS, "/models", re.compile(r"[A-Za-z0-9._:@/-]{1,200}"))
# Tools that the agent itself carries out; all others run at the provider.
_OWN_TOOLS: Final = ("function", "custom", "local_shell", "apply_patch", "computer_use_preview", "computer")
# Members of a request that refer to something that the provider keeps, or that it does by itself; after the vendor's own those
# of others that speak this protocol: searches, plugins, servers of tools, models and places other than those asked for.
_KEPT: Final = (
    "previous_response_id", "conversation", "background", "web_search_options", "container",
    "search_parameters", "enable_search", "search_options", "plugins", "mcp_servers", "tool_resources", "fallbacks", "models",
    "api_base", "base_url", "api_key",
)  # fmt: skip
_TOP: Final = frozenset((
    *_KEPT, "prompt", "store", "tools", "messages", "input", "model", "stream", "stream_options", "n", "best_of",
    "max_tokens", "max_completion_tokens", "max_output_tokens",
))  # fmt: skip
_REFERS: Final = ("file_id", "container_id", "server_url", "connector_id")
_INNER: Final = frozenset((*_REFERS, "type", "tools", "image_url", "file_url", "video_url", "audio_url"))
_TYPES: Final = {"token": "authentication_error", "forbidden": "permission_error", "budget": "insufficient_quota"}
_CODES: Final = {
    "token": "invalid_api_key", "forbidden": "not_allowed", "missing": "model_not_found", "budget": "insufficient_quota",
    "overloaded": "queue_full", "large": "request_too_large", "late": "timeout", "unavailable": "unavailable",
}  # fmt: skip


def find(method: str, path: str) -> Call | None:
    """SDKs append their paths to a base URL that ends in /v1 or has none."""
    return _CALLS.find(method, path.removeprefix("v1/"))


def screen(call: Call, body: dict[str, Any]) -> Screened:
    """Raises Answer for hosted tools, stored objects and background jobs."""
    spelled(body, _TOP)
    for name in (*_KEPT, *(["prompt"] if call.name == "responses" else [])):  # of completions that is the text itself
        if present(body.get(name)):
            raise forbid(name)
    if call.name in ("chat", "responses"):
        body["store"] = False
    for tool in _tools(body.get("tools")):
        _own(tool)
    found = Screened()
    for name in ("messages", "input"):
        for part in walk(body.get(name), _opaque):
            _part(part, found)
    return found


def _tools(value: Any) -> list[Mapping[str, Any]]:
    """Tools, those of a group (`namespace`) among them."""
    found: list[Mapping[str, Any]] = []
    for tool in objects(value):
        found += _tools(tool.get("tools")) if tool.get("type") == "namespace" else [tool]
    return found


def _own(tool: Mapping[str, Any]) -> None:
    spelled(tool, ("type",))
    kind = tool.get("type")
    if kind not in _OWN_TOOLS:
        raise forbid(f"the hosted tool {kind}")


def _opaque(part: Mapping[str, Any]) -> tuple[str, ...]:
    """What a tool was given or gave as data."""
    return ("arguments", "action", "operation") if "type" in part else ("arguments",)


def _part(part: Mapping[str, Any], found: Screened) -> None:
    spelled(part, _INNER)
    kind = part.get("type")
    if kind == "item_reference":
        raise forbid("item_reference")
    for name in _REFERS:
        if part.get(name):
            raise forbid(name)
    if kind == "additional_tools":  # tools in the middle of a conversation
        for tool in _tools(part.get("tools")):
            _own(tool)
    for name, value in part.items():
        if not name.endswith("_url"):  # of an image, a file, a video, a sound: each server knows others
            continue
        url = value.get("url") if isinstance(value, dict) else value
        if url is not None:
            found.urls.append(str(url))


def wanted(call: Call, body: dict[str, Any]) -> int | None:
    """Raises Answer for a cap that is no number."""
    found = [n for name in _caps(call) if (n := positive(body, name)) is not None]
    return max(found, default=None)


def _caps(call: Call) -> tuple[str, ...]:
    if call.name == "responses":
        return ("max_output_tokens",)
    return ("max_completion_tokens", "max_tokens") if call.name == "chat" else ("max_tokens",)


def cap(call: Call, body: dict[str, Any], tokens: int) -> None:
    """In the member that the body has; the vendor's present name where it has none."""
    names = [name for name in _caps(call) if body.get(name) is not None] or [_caps(call)[0]]
    for name in names:
        body[name] = tokens


def answers(body: dict[str, Any]) -> int:
    """`n`, and `best_of` of completions, which makes more than it shows. Raises Answer."""
    return max(positive(body, "n") or 1, positive(body, "best_of") or 1)


def ask_usage(call: Call, body: dict[str, Any]) -> bool:
    """Streams of chat and completions tell their usage only when asked. Raises Answer."""
    if call.name not in ("chat", "completions"):
        return False
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise Answer("invalid", "stream_options must be an object")
    asked = bool(options.get("include_usage"))
    # Sums in between, which some servers give, would look like the last one.
    kept = {name: value for name, value in options.items() if name != "continuous_usage_stats"}
    body["stream_options"] = {**kept, "include_usage": True}
    return not asked


def usage(document: Mapping[str, Any]) -> Usage | None:
    """Of an answer, a chunk, or an event of the responses API, which holds the whole answer at its end."""
    inner = document.get("response")
    holder = inner if isinstance(inner, dict) else document
    found = holder.get("usage")
    if not isinstance(found, dict):
        return None
    given = number(found.get("prompt_tokens", found.get("input_tokens")))
    made = number(found.get("completion_tokens", found.get("output_tokens")))
    return Usage(given, made if made is not None else 0, final=True)


def hidden(document: Mapping[str, Any]) -> bool:
    """The last chunk of a chat: no choice, only usage."""
    return document.get("choices") == [] and isinstance(document.get("usage"), dict)


def error(status: int, reason: Reason, message: str, _wait: float) -> bytes:
    """The vendor's error object."""
    shape = {"message": message, "type": _TYPES.get(reason, "invalid_request_error" if status < 500 else "server_error"),
             "param": None, "code": _CODES.get(reason)}  # fmt: skip
    return json.dumps({"error": shape}).encode()


def auth(key: str) -> tuple[tuple[bytes, bytes], ...]:
    """RFC 6750."""
    return ((b"authorization", b"Bearer " + key.encode()),) if key else ()


OPENAI: Final = Kind(
    find=find, screen=screen, wanted=wanted, answers=answers, cap=cap, ask_usage=ask_usage, usage=usage, hidden=hidden,
    error=error, auth=auth, headers=(b"openai-beta",), query=(), model_ids=keep_rows,
)  # fmt: skip
