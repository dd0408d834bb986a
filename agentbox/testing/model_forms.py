"""One answer of a model in the wire forms of its makers, whole and as a stream (their API references, 2026)."""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

PIECE: Final = 12  # characters of a text in one event


@dataclass(frozen=True, kw_only=True)
class Use:
    """The model asks for a tool. `free` = its input is a text (OpenAI's custom tools), in `arguments["input"]`."""

    name: str
    arguments: Mapping[str, Any]
    free: bool = False


@dataclass(frozen=True, kw_only=True)
class Said:
    """One turn. `tokens` = output tokens that it takes, cut at the request's cap; None = a quarter of the text's length."""

    text: str = ""
    uses: tuple[Use, ...] = ()
    tokens: int | None = None
    piece: int = PIECE  # characters of the text in one event

    @property
    def pieces(self) -> list[str]:
        """The text, as a stream has it."""
        return _pieces(self.text, self.piece)

    def used(self, body: Mapping[str, Any]) -> tuple[int, int]:
        """Tokens of input and output, as every form tells them."""
        length = len(self.text) + sum(len(json.dumps(use.arguments)) for use in self.uses)
        made = self.tokens if self.tokens is not None else max(1, length // 4)
        config = body.get("generationConfig", {})
        caps = [body.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
        return len(json.dumps(body)) // 4, min([made, *(n for n in (*caps, config.get("maxOutputTokens")) if n)])


@dataclass(frozen=True, kw_only=True)
class Form:
    """One API. The last argument of `whole` and `events`: tell no usage."""

    takes: Callable[[str], bool]
    streams: Callable[[str, Mapping[str, Any]], bool]
    spoken: Callable[[Mapping[str, Any]], int]
    whole: Callable[[str, Mapping[str, Any], Said, bool], dict[str, Any]]
    events: Callable[[Mapping[str, Any], Said, bool], Sequence[bytes]]


def _id(kind: str, body: Mapping[str, Any], number: int = 0) -> str:
    """The same for the same request, another for the next: clients take two answers or calls of one id for one."""
    return f"{kind}_{zlib.crc32(json.dumps(body).encode()):08x}{number}"


def _event(document: Mapping[str, Any], name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(document)}\n\n".encode()


def _pieces(text: str, length: int = PIECE) -> list[str]:
    return [text[at : at + length] for at in range(0, len(text), length)]


def _asks(_path: str, body: Mapping[str, Any]) -> bool:
    return body.get("stream") is True


def _roles(name: str, role: str) -> Callable[[Mapping[str, Any]], int]:
    return lambda body: sum(row.get("role") == role for row in body.get(name, ()))


# OpenAI: chat completions


def _chat(_path: str, body: Mapping[str, Any], said: Said, silent: bool) -> dict[str, Any]:
    calls = [
        {
            "id": _id("call", body, n),
            "type": "function",
            "function": {"name": u.name, "arguments": json.dumps(u.arguments)},
        }
        for n, u in enumerate(said.uses)
    ]
    message = {"role": "assistant", "content": said.text, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    answer = {"id": _id("chat", body), "object": "chat.completion", "model": body.get("model"), "choices": [choice]}
    return answer if silent else {**answer, "usage": _chat_usage(body, said)}


def _chat_usage(body: Mapping[str, Any], said: Said) -> dict[str, int]:
    given, made = said.used(body)
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def _chat_events(body: Mapping[str, Any], said: Said, silent: bool) -> list[bytes]:
    def chunk(delta: Mapping[str, Any], reason: str | None = None) -> bytes:
        row = {"index": 0, "delta": delta, "finish_reason": reason}
        return _event(
            {"id": _id("chat", body), "object": "chat.completion.chunk", "model": body.get("model"), "choices": [row]}
        )

    calls = [
        {"index": n, "id": _id("call", body, n), "type": "function", "function": {"name": u.name, "arguments": json.dumps(u.arguments)}}
        for n, u in enumerate(said.uses)
    ]  # fmt: skip
    events = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": piece}) for piece in said.pieces)]
    events += [chunk({"tool_calls": calls})] if calls else []
    events.append(chunk({}, "tool_calls" if calls else "stop"))
    if body.get("stream_options", {}).get("include_usage") and not silent:
        events.append(
            _event(
                {
                    "id": _id("chat", body),
                    "object": "chat.completion.chunk",
                    "choices": [],
                    "usage": _chat_usage(body, said),
                }
            )
        )
    return [*events, b"data: [DONE]\n\n"]


# OpenAI: responses


def _items(body: Mapping[str, Any], said: Said) -> list[dict[str, Any]]:
    text = {"type": "output_text", "text": said.text, "annotations": []}
    items: list[dict[str, Any]] = []
    if said.text:
        items.append(
            {"id": _id("msg", body), "type": "message", "role": "assistant", "status": "completed", "content": [text]}
        )
    for n, use in enumerate(said.uses):
        shared = {"id": _id("fc", body, n), "call_id": _id("call", body, n), "name": use.name, "status": "completed"}
        if use.free:
            items.append({**shared, "type": "custom_tool_call", "input": use.arguments["input"]})
        else:
            items.append({**shared, "type": "function_call", "arguments": json.dumps(use.arguments)})
    return items


def _response(_path: str, body: Mapping[str, Any], said: Said, silent: bool) -> dict[str, Any]:
    given, made = said.used(body)
    usage = {
        "input_tokens": given, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": given + made,
    }  # fmt: skip
    answer = {
        "id": _id("resp", body),
        "object": "response",
        "status": "completed",
        "model": body.get("model"),
        "output": _items(body, said),
    }
    return answer if silent else {**answer, "usage": usage}


def _response_events(body: Mapping[str, Any], said: Said, silent: bool) -> list[bytes]:
    number = iter(range(1_000_000))

    def event(name: str, **members: Any) -> bytes:
        return _event({"type": name, "sequence_number": next(number), **members}, name)

    begun: dict[str, Any] = {
        "id": _id("resp", body),
        "object": "response",
        "status": "in_progress",
        "model": body.get("model"),
        "output": [],
    }
    events = [event("response.created", response=begun)]
    for at, item in enumerate(_items(body, said)):
        started = {**item, "status": "in_progress"}
        if item["type"] == "message":
            started["content"] = []
        events.append(event("response.output_item.added", output_index=at, item=started))
        if item["type"] == "message":
            place = {"item_id": item["id"], "output_index": at, "content_index": 0}
            events += [event("response.output_text.delta", **place, delta=piece) for piece in said.pieces]
        events.append(event("response.output_item.done", output_index=at, item=item))
    return [*events, event("response.completed", response=_response("", body, said, silent))]


def _responded(body: Mapping[str, Any]) -> int:
    """Turns of the model: runs of its items between those of the user and of tools."""
    rows = body.get("input", ())
    own = ("function_call", "custom_tool_call", "reasoning", "local_shell_call")
    flags = [row.get("role") == "assistant" or row.get("type") in own for row in rows if isinstance(row, dict)]
    return sum(flag and not before for before, flag in zip([False, *flags], flags, strict=False))


# Anthropic: messages


def _blocks(body: Mapping[str, Any], said: Said) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": said.text}] if said.text else []
    uses = [
        {"type": "tool_use", "id": _id("toolu", body, n), "name": u.name, "input": u.arguments}
        for n, u in enumerate(said.uses)
    ]
    return [*text, *uses]


def _message(path: str, body: Mapping[str, Any], said: Said, silent: bool) -> dict[str, Any]:
    given, made = said.used(body)
    if path.endswith("/count_tokens"):
        return {"input_tokens": given}
    answer = {
        "id": _id("msg", body), "type": "message", "role": "assistant", "model": body.get("model"), "content": _blocks(body, said),
        "stop_reason": "tool_use" if said.uses else "end_turn", "stop_sequence": None,
    }  # fmt: skip
    return answer if silent else {**answer, "usage": {"input_tokens": given, "output_tokens": made}}


def _message_events(body: Mapping[str, Any], said: Said, silent: bool) -> list[bytes]:
    given, made = said.used(body)
    begun = {**_message("", body, said, True), "content": [], "stop_reason": None}
    begun["usage"] = {"input_tokens": given, "output_tokens": 1}
    events = [_event({"type": "message_start", "message": begun}, "message_start")]
    for at, block in enumerate(_blocks(body, said)):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        whole = said.text if block["type"] == "text" else json.dumps(block["input"])
        kind = ("text_delta", "text") if block["type"] == "text" else ("input_json_delta", "partial_json")
        events.append(
            _event({"type": "content_block_start", "index": at, "content_block": empty}, "content_block_start")
        )
        for piece in _pieces(whole, said.piece):
            delta = {"type": "content_block_delta", "index": at, "delta": {"type": kind[0], kind[1]: piece}}
            events.append(_event(delta, "content_block_delta"))
        events.append(_event({"type": "content_block_stop", "index": at}, "content_block_stop"))
    reason = {"stop_reason": "tool_use" if said.uses else "end_turn", "stop_sequence": None}
    last: dict[str, Any] = {"type": "message_delta", "delta": reason}
    if not silent:
        last["usage"] = {"output_tokens": made}
    return [*events, _event(last, "message_delta"), _event({"type": "message_stop"}, "message_stop")]


# Gemini


def _candidates(path: str, body: Mapping[str, Any], said: Said, silent: bool) -> dict[str, Any]:
    given, made = said.used(body)
    if path.endswith(":countTokens"):
        return {"totalTokens": given}
    if path.endswith(":embedContent"):
        return {"embedding": {"values": [0.0, 1.0]}}
    parts = [{"text": said.text}, *({"functionCall": {"name": u.name, "args": u.arguments}} for u in said.uses)]
    answer = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    usage = {"promptTokenCount": given, "candidatesTokenCount": made, "totalTokenCount": given + made}
    return answer if silent else {**answer, "usageMetadata": usage}


def _candidate_events(body: Mapping[str, Any], said: Said, silent: bool) -> list[bytes]:
    rows = [{"candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}}]} for piece in said.pieces]
    return [
        _event(row) for row in [*rows, _candidates("", body, Said(uses=said.uses, tokens=said.used(body)[1]), silent)]
    ]


def _embeddings(_path: str, body: Mapping[str, Any], said: Said, _silent: bool) -> dict[str, Any]:
    given = said.used(body)[0]
    rows = [{"object": "embedding", "index": 0, "embedding": [0.0, 1.0]}]
    return {"object": "list", "data": rows, "usage": {"prompt_tokens": given, "total_tokens": given}}


FORMS: Final = (
    Form(takes=lambda path: path.endswith("/chat/completions"), streams=_asks, spoken=_roles("messages", "assistant"),
         whole=_chat, events=_chat_events),
    Form(takes=lambda path: path.endswith("/responses"), streams=_asks, spoken=_responded,
         whole=_response, events=_response_events),
    Form(takes=lambda path: "/v1/messages" in path, streams=_asks, spoken=_roles("messages", "assistant"),
         whole=_message, events=_message_events),
    Form(takes=lambda path: "/models/" in path and ":" in path, streams=lambda path, _body: ":stream" in path,
         spoken=_roles("contents", "model"), whole=_candidates, events=_candidate_events),
    Form(takes=lambda path: path.endswith("/embeddings"), streams=lambda _path, _body: False, spoken=lambda _body: 0,
         whole=_embeddings, events=lambda _body, _said, _silent: ()),
)  # fmt: skip
