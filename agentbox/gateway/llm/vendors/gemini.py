"""Kind `gemini`: generateContent, streamGenerateContent, countTokens, embedContent, models (the vendor's API reference, 2026)."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

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
    walk,
)

_CALL: Final = re.compile(r"(v1|v1beta)/models/([A-Za-z0-9._-]{1,200})(?::([A-Za-z]{1,32}))?")
_LIST: Final = re.compile(r"(v1|v1beta)/models")
_OWN_TOOLS: Final = ("function_declarations", "computer_use")
_STATUS: Final = {
    "invalid": "INVALID_ARGUMENT", "token": "UNAUTHENTICATED", "forbidden": "PERMISSION_DENIED", "missing": "NOT_FOUND",
    "large": "INVALID_ARGUMENT", "budget": "RESOURCE_EXHAUSTED", "overloaded": "UNAVAILABLE", "provider": "INTERNAL",
    "late": "DEADLINE_EXCEEDED", "unavailable": "UNAVAILABLE",
}  # fmt: skip


def find(method: str, path: str) -> Call | None:
    """The model is in the path."""
    if method == "GET" and _LIST.fullmatch(path):
        return Call(name="models", path=f"/{path}", body=False, lists=True)
    one = _CALL.fullmatch(path)
    if one is None:
        return None
    model, action = one[2], one[3]
    if method == "GET" and action is None:
        return Call(name="models", path=f"/{path}", model=model, body=False)
    if method != "POST":
        return None
    if action in ("generateContent", "streamGenerateContent"):
        streams = action == "streamGenerateContent"
        return Call(name=action, path=f"/{path}", model=model, generates=True, counts_input=True, streams=streams)
    if action == "embedContent":
        return Call(name=action, path=f"/{path}", model=model, counts_input=True)
    return Call(name=action, path=f"/{path}", model=model) if action == "countTokens" else None


def screen(_call: Call, body: dict[str, Any]) -> Screened:
    """Raises Answer for hosted tools, cached content and files that the provider keeps. Names come in two spellings."""
    found = Screened()
    nested = [one for one in _of(body, "generate_content_request") if isinstance(one, dict)]
    for request in (body, *nested):
        if any(map(present, _of(request, "cached_content"))):
            raise forbid("cachedContent")
        for tool in objects(request.get("tools")):
            for name in tool:
                if _snake(name) not in _OWN_TOOLS:
                    raise forbid(f"the hosted tool {name}")
        for name in ("contents", "content", "system_instruction"):
            for part in walk(list(_of(request, name)), _opaque):
                _part(part, found)
    return found


def _opaque(part: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in part if _snake(name) in ("args",))


def _part(part: Mapping[str, Any], found: Screened) -> None:
    for value in _of(part, "file_uri"):
        url = str(value)
        if "/files/" in url or not url.startswith(("http://", "https://")):
            raise forbid("fileUri of a stored file")
        found.urls.append(url)


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def _of(holder: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """A member by any of its spellings, of which proto3 JSON takes two."""
    return tuple(value for key, value in holder.items() if _snake(key) == name)


def _settings(body: dict[str, Any]) -> dict[str, Any]:
    """`generationConfig`, made where it is absent, under one spelling. Raises Answer."""
    found = _of(body, "generation_config")
    if len(found) > 1 or not all(isinstance(one, dict) for one in found):
        raise Answer("invalid", "generationConfig must be an object, given once")
    body.pop("generation_config", None)
    body["generationConfig"] = settings = dict(*found)
    for plain, other in (("maxOutputTokens", "max_output_tokens"), ("candidateCount", "candidate_count")):
        if other in settings:
            settings.setdefault(plain, settings.pop(other))
    settings.pop("max_output_tokens", None)
    settings.pop("candidate_count", None)
    return settings


def wanted(_call: Call, body: dict[str, Any]) -> int | None:
    """Raises Answer for a cap that is no number."""
    return positive(_settings(body), "maxOutputTokens")


def cap(_call: Call, body: dict[str, Any], tokens: int) -> None:
    """In `generationConfig`."""
    _settings(body)["maxOutputTokens"] = tokens


def answers(body: dict[str, Any]) -> int:
    """`candidateCount`. Raises Answer."""
    return positive(_settings(body), "candidateCount") or 1


def ask_usage(_call: Call, _body: dict[str, Any]) -> bool:
    """Streams tell it unasked."""
    return False


def usage(document: Mapping[str, Any]) -> Usage | None:
    """`usageMetadata`; what a model thinks is output."""
    found = document.get("usageMetadata")
    if not isinstance(found, dict):
        return None
    given = number(found.get("promptTokenCount"))
    total = number(found.get("totalTokenCount"))
    made = [number(found.get(name)) or 0 for name in ("candidatesTokenCount", "thoughtsTokenCount")]
    output = max(sum(made), total - (given or 0) if total is not None else 0)
    ended = any(isinstance(row, dict) and row.get("finishReason") for row in document.get("candidates") or ())
    return Usage(given, output, final=ended)


def hidden(_document: Mapping[str, Any]) -> bool:
    """None is."""
    return False


def error(status: int, reason: Reason, message: str, wait: float) -> bytes:
    """google.rpc.Status, with RetryInfo where it is known."""
    shape: dict[str, Any] = {"code": status, "message": message, "status": _STATUS[reason]}
    if wait:
        retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait:.0f}s"}
        shape["details"] = [retry]
    return json.dumps({"error": shape}).encode()


def auth(key: str) -> tuple[tuple[bytes, bytes], ...]:
    """The vendor's own header; a key in a query would stand in logs."""
    return ((b"x-goog-api-key", key.encode()),) if key else ()


def model_ids(document: dict[str, Any], allowed: Callable[[str], bool]) -> None:
    """`models[].name` is `models/<id>`."""
    rows = objects(document.get("models"))
    document["models"] = [row for row in rows if allowed(str(row.get("name", "")).removeprefix("models/"))]


GEMINI: Final = Kind(
    find=find, screen=screen, wanted=wanted, answers=answers, cap=cap, ask_usage=ask_usage, usage=usage, hidden=hidden,
    error=error, auth=auth, headers=(), query=("alt", "pageSize", "pageToken"), model_ids=model_ids,
)  # fmt: skip
