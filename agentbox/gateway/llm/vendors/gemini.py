"""Kind `gemini`: generateContent, streamGenerateContent, countTokens, embedContent, models (the
vendor's API reference, 2026)."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentbox.gateway.llm.vendor_protocol import (
    ModelGatewayError,
    Reason,
    ScreenedBody,
    Usage,
    VendorCall,
    VendorProtocol,
    forbidden_content,
    is_present,
    objects,
    positive_int,
    token_count,
    walk,
)

_CALL: Final = re.compile(r"(v1|v1beta)/models/([A-Za-z0-9._-]{1,200})(?::([A-Za-z]{1,32}))?")
_LIST: Final = re.compile(r"(v1|v1beta)/models")
_CLIENT_TOOLS: Final = ("function_declarations", "computer_use")
# Members that make a call cost more or less than the listed price.
_PRICED: Final = {"serviceTier": ("standard", "flex"), "service_tier": ("standard", "flex")}
_STATUS: Final = {
    "invalid": "INVALID_ARGUMENT",
    "token": "UNAUTHENTICATED",
    "forbidden": "PERMISSION_DENIED",
    "missing": "NOT_FOUND",
    "large": "INVALID_ARGUMENT",
    "budget": "RESOURCE_EXHAUSTED",
    "overloaded": "UNAVAILABLE",
    "provider": "INTERNAL",
    "late": "DEADLINE_EXCEEDED",
    "unavailable": "UNAVAILABLE",
}


def find_call(method: str, path: str) -> VendorCall | None:
    """Parses the model and the action from the path."""
    if method == "GET" and _LIST.fullmatch(path):
        return VendorCall(name="models", path=f"/{path}", body=False, lists=True)
    match = _CALL.fullmatch(path)
    if match is None:
        return None
    model, action = match[2], match[3]
    if method == "GET" and action is None:
        return VendorCall(name="models", path=f"/{path}", model=model, body=False)
    if method != "POST":
        return None
    if action in ("generateContent", "streamGenerateContent"):
        streams = action == "streamGenerateContent"
        return VendorCall(
            name=action,
            path=f"/{path}",
            model=model,
            generates=True,
            counts_input=True,
            streams=streams,
        )
    if action == "embedContent":
        return VendorCall(name=action, path=f"/{path}", model=model, counts_input=True)
    return (
        VendorCall(name=action, path=f"/{path}", model=model) if action == "countTokens" else None
    )


def screen(_call: VendorCall, body: dict[str, Any]) -> ScreenedBody:
    """Raises ModelGatewayError for hosted tools, cached content and stored files. Member names have
    two forms."""
    screened = ScreenedBody()
    nested = [item for item in _members(body, "generate_content_request") if isinstance(item, dict)]
    for request in (body, *nested):
        if any(map(is_present, _members(request, "cached_content"))):
            raise forbidden_content("cachedContent")
        for tool in objects(request.get("tools")):
            for name in tool:
                if _snake_case(name) not in _CLIENT_TOOLS:
                    raise forbidden_content(f"the hosted tool {name}")
        for name in ("contents", "content", "system_instruction"):
            for item in walk(list(_members(request, name)), _opaque_members):
                _screen_item(item, screened)
    return screened


def _opaque_members(item: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in item if _snake_case(name) in ("args",))


def _screen_item(item: Mapping[str, Any], screened: ScreenedBody) -> None:
    for value in _members(item, "file_uri"):
        url = str(value)
        if "/files/" in url or not url.startswith(("http://", "https://")):
            raise forbidden_content("fileUri of a stored file")
        screened.urls.append(url)


def _snake_case(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def _members(holder: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """The values of a member in both forms that proto3 JSON accepts."""
    return tuple(value for key, value in holder.items() if _snake_case(key) == name)


def _generation_config(body: dict[str, Any]) -> dict[str, Any]:
    """`generationConfig`, created if absent, with unified names. Raises ModelGatewayError."""
    configs = _members(body, "generation_config")
    if len(configs) > 1 or not all(isinstance(config, dict) for config in configs):
        raise ModelGatewayError("invalid", "generationConfig must be a single object")
    body.pop("generation_config", None)
    body["generationConfig"] = settings = dict(*configs)
    for canonical, alias in (
        ("maxOutputTokens", "max_output_tokens"),
        ("candidateCount", "candidate_count"),
    ):
        if alias in settings:
            settings.setdefault(canonical, settings.pop(alias))
    settings.pop("max_output_tokens", None)
    settings.pop("candidate_count", None)
    return settings


def max_output(_call: VendorCall, body: dict[str, Any]) -> int | None:
    """Raises ModelGatewayError for an invalid cap."""
    return positive_int(_generation_config(body), "maxOutputTokens")


def set_max_output(_call: VendorCall, body: dict[str, Any], tokens: int) -> None:
    """Sets `generationConfig.maxOutputTokens`."""
    _generation_config(body)["maxOutputTokens"] = tokens


def choices(body: dict[str, Any]) -> int:
    """`candidateCount`. Raises ModelGatewayError."""
    return positive_int(_generation_config(body), "candidateCount") or 1


def request_usage(_call: VendorCall, _body: dict[str, Any]) -> bool:
    """Streams always include usage."""
    return False


def usage(document: Mapping[str, Any]) -> Usage | None:
    """`usageMetadata`; thinking counts as output."""
    metadata = document.get("usageMetadata")
    if not isinstance(metadata, dict):
        return None
    input_tokens = token_count(metadata.get("promptTokenCount"))
    total = token_count(metadata.get("totalTokenCount"))
    output_counts = [
        token_count(metadata.get(name)) or 0
        for name in ("candidatesTokenCount", "thoughtsTokenCount")
    ]
    output = max(sum(output_counts), total - (input_tokens or 0) if total is not None else 0)
    finished = any(
        isinstance(row, dict) and row.get("finishReason")
        for row in document.get("candidates") or ()
    )
    cached = token_count(metadata.get("cachedContentTokenCount")) or 0
    return Usage(input_tokens, output, cache_read=cached, final=finished)


def is_usage_only(_document: Mapping[str, Any]) -> bool:
    """No event is usage-only."""
    return False


def format_error(status: int, reason: Reason, message: str, retry_after: float) -> bytes:
    """google.rpc.Status, with RetryInfo if the delay is known."""
    shape: dict[str, Any] = {"code": status, "message": message, "status": _STATUS[reason]}
    if retry_after:
        retry = {
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": f"{retry_after:.0f}s",
        }
        shape["details"] = [retry]
    return json.dumps({"error": shape}).encode()


def auth_headers(key: str) -> tuple[tuple[bytes, bytes], ...]:
    """The vendor's authentication header; a key in the query would appear in logs."""
    return ((b"x-goog-api-key", key.encode()),) if key else ()


def filter_models(document: dict[str, Any], allowed: Callable[[str], bool]) -> None:
    """`models[].name` is `models/<id>`."""
    rows = objects(document.get("models"))
    document["models"] = [
        row for row in rows if allowed(str(row.get("name", "")).removeprefix("models/"))
    ]


GEMINI: Final = VendorProtocol(
    find_call=find_call,
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
    headers=(),
    query_parameters=("alt", "pageSize", "pageToken"),
    filter_models=filter_models,
)
