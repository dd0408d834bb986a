"""A model response in the formats of several vendors, complete and streamed (their API references,
2026).
"""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

CHUNK_SIZE: Final = 12  # characters of a text in one event


@dataclass(frozen=True, kw_only=True)
class ToolUse:
    """A tool call of the model. `is_text` = its input is a text (OpenAI's custom tools), in
    `arguments["input"]`.
    """

    name: str
    arguments: Mapping[str, Any]
    is_text: bool = False


@dataclass(frozen=True, kw_only=True)
class ModelTurn:
    """A turn. `tokens` = its output tokens, limited by the request; None = a quarter of the text's
    length.
    """

    text: str = ""
    tool_uses: tuple[ToolUse, ...] = ()
    tokens: int | None = None
    chunk_size: int = CHUNK_SIZE  # characters of the text in one event

    @property
    def chunks(self) -> list[str]:
        """The text in the chunks of a stream."""
        return _pieces(self.text, self.chunk_size)

    def token_counts(self, body: Mapping[str, Any]) -> tuple[int, int]:
        """Return the tokens of input and output."""
        length = len(self.text) + sum(len(json.dumps(use.arguments)) for use in self.tool_uses)
        generated = self.tokens if self.tokens is not None else max(1, length // 4)
        config = body.get("generationConfig", {})
        caps = [
            body.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")
        ]
        return len(json.dumps(body)) // 4, min(
            [generated, *(n for n in (*caps, config.get("maxOutputTokens")) if n)]
        )


@dataclass(frozen=True, kw_only=True)
class ApiFormat:
    """An API. The last argument of `build_body` and `build_events`: omit usage."""

    matches: Callable[[str], bool]
    is_stream: Callable[[str, Mapping[str, Any]], bool]
    count_turns: Callable[[Mapping[str, Any]], int]
    build_body: Callable[[str, Mapping[str, Any], ModelTurn, bool], dict[str, Any]]
    build_events: Callable[[Mapping[str, Any], ModelTurn, bool], Sequence[bytes]]


def _id(kind: str, body: Mapping[str, Any], number: int = 0) -> str:
    """Return an id that is equal for equal requests and else different: clients identify responses
    and calls by it.
    """
    return f"{kind}_{zlib.crc32(json.dumps(body).encode()):08x}{number}"


def _event(document: Mapping[str, Any], name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(document)}\n\n".encode()


def _pieces(text: str, length: int = CHUNK_SIZE) -> list[str]:
    return [text[start : start + length] for start in range(0, len(text), length)]


def _is_stream(_path: str, body: Mapping[str, Any]) -> bool:
    return body.get("stream") is True


def _role_counter(name: str, role: str) -> Callable[[Mapping[str, Any]], int]:
    return lambda body: sum(row.get("role") == role for row in body.get(name, ()))


# OpenAI: chat completions


def _chat(_path: str, body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool) -> dict[str, Any]:
    calls = [
        {
            "id": _id("call", body, n),
            "type": "function",
            "function": {"name": u.name, "arguments": json.dumps(u.arguments)},
        }
        for n, u in enumerate(turn.tool_uses)
    ]
    message = {
        "role": "assistant",
        "content": turn.text,
        **({"tool_calls": calls} if calls else {}),
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    answer = {
        "id": _id("chat", body),
        "object": "chat.completion",
        "model": body.get("model"),
        "choices": [choice],
    }
    return answer if omit_usage else {**answer, "usage": _chat_usage(body, turn)}


def _chat_usage(body: Mapping[str, Any], turn: ModelTurn) -> dict[str, int]:
    input_tokens, output_tokens = turn.token_counts(body)
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }


def _chat_events(body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool) -> list[bytes]:
    def chunk(delta: Mapping[str, Any], reason: str | None = None) -> bytes:
        row = {"index": 0, "delta": delta, "finish_reason": reason}
        return _event(
            {
                "id": _id("chat", body),
                "object": "chat.completion.chunk",
                "model": body.get("model"),
                "choices": [row],
            }
        )

    calls = [
        {
            "index": n,
            "id": _id("call", body, n),
            "type": "function",
            "function": {"name": u.name, "arguments": json.dumps(u.arguments)},
        }
        for n, u in enumerate(turn.tool_uses)
    ]
    events = [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": piece}) for piece in turn.chunks),
    ]
    events += [chunk({"tool_calls": calls})] if calls else []
    events.append(chunk({}, "tool_calls" if calls else "stop"))
    if body.get("stream_options", {}).get("include_usage") and not omit_usage:
        events.append(
            _event(
                {
                    "id": _id("chat", body),
                    "object": "chat.completion.chunk",
                    "choices": [],
                    "usage": _chat_usage(body, turn),
                }
            )
        )
    return [*events, b"data: [DONE]\n\n"]


# OpenAI: responses


def _items(body: Mapping[str, Any], turn: ModelTurn) -> list[dict[str, Any]]:
    text = {"type": "output_text", "text": turn.text, "annotations": []}
    items: list[dict[str, Any]] = []
    if turn.text:
        items.append(
            {
                "id": _id("msg", body),
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            }
        )
    for n, use in enumerate(turn.tool_uses):
        shared = {
            "id": _id("fc", body, n),
            "call_id": _id("call", body, n),
            "name": use.name,
            "status": "completed",
        }
        if use.is_text:
            items.append({**shared, "type": "custom_tool_call", "input": use.arguments["input"]})
        else:
            items.append(
                {**shared, "type": "function_call", "arguments": json.dumps(use.arguments)}
            )
    return items


def _response(
    _path: str, body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool
) -> dict[str, Any]:
    input_tokens, output_tokens = turn.token_counts(body)
    usage = {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input_tokens + output_tokens,
    }
    answer = {
        "id": _id("resp", body),
        "object": "response",
        "status": "completed",
        "model": body.get("model"),
        "output": _items(body, turn),
    }
    return answer if omit_usage else {**answer, "usage": usage}


def _response_events(body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool) -> list[bytes]:
    number = iter(range(1_000_000))

    def event(name: str, **members: Any) -> bytes:
        return _event({"type": name, "sequence_number": next(number), **members}, name)

    initial: dict[str, Any] = {
        "id": _id("resp", body),
        "object": "response",
        "status": "in_progress",
        "model": body.get("model"),
        "output": [],
    }
    events = [event("response.created", response=initial)]
    for index, item in enumerate(_items(body, turn)):
        started = {**item, "status": "in_progress"}
        if item["type"] == "message":
            started["content"] = []
        events.append(event("response.output_item.added", output_index=index, item=started))
        if item["type"] == "message":
            position = {"item_id": item["id"], "output_index": index, "content_index": 0}
            events += [
                event("response.output_text.delta", **position, delta=chunk)
                for chunk in turn.chunks
            ]
        events.append(event("response.output_item.done", output_index=index, item=item))
    return [*events, event("response.completed", response=_response("", body, turn, omit_usage))]


def _count_model_turns(body: Mapping[str, Any]) -> int:
    """Count turns of the model: runs of its items between those of the user and of tools."""
    rows = body.get("input", ())
    model_types = ("function_call", "custom_tool_call", "reasoning", "local_shell_call")
    flags = [
        row.get("role") == "assistant" or row.get("type") in model_types
        for row in rows
        if isinstance(row, dict)
    ]
    return sum(
        flag and not previous for previous, flag in zip([False, *flags], flags, strict=False)
    )


# Anthropic: messages


def _blocks(body: Mapping[str, Any], turn: ModelTurn) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": turn.text}] if turn.text else []
    uses = [
        {"type": "tool_use", "id": _id("toolu", body, n), "name": u.name, "input": u.arguments}
        for n, u in enumerate(turn.tool_uses)
    ]
    return [*text, *uses]


def _message(
    path: str, body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool
) -> dict[str, Any]:
    input_tokens, output_tokens = turn.token_counts(body)
    if path.endswith("/count_tokens"):
        return {"input_tokens": input_tokens}
    answer = {
        "id": _id("msg", body),
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": _blocks(body, turn),
        "stop_reason": "tool_use" if turn.tool_uses else "end_turn",
        "stop_sequence": None,
    }
    return (
        answer
        if omit_usage
        else {**answer, "usage": {"input_tokens": input_tokens, "output_tokens": output_tokens}}
    )


def _message_events(body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool) -> list[bytes]:
    input_tokens, output_tokens = turn.token_counts(body)
    initial = {**_message("", body, turn, True), "content": [], "stop_reason": None}
    initial["usage"] = {"input_tokens": input_tokens, "output_tokens": 1}
    events = [_event({"type": "message_start", "message": initial}, "message_start")]
    for index, block in enumerate(_blocks(body, turn)):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        text = turn.text if block["type"] == "text" else json.dumps(block["input"])
        kind = (
            ("text_delta", "text")
            if block["type"] == "text"
            else ("input_json_delta", "partial_json")
        )
        events.append(
            _event(
                {"type": "content_block_start", "index": index, "content_block": empty},
                "content_block_start",
            )
        )
        for chunk in _pieces(text, turn.chunk_size):
            delta = {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": kind[0], kind[1]: chunk},
            }
            events.append(_event(delta, "content_block_delta"))
        events.append(_event({"type": "content_block_stop", "index": index}, "content_block_stop"))
    reason = {"stop_reason": "tool_use" if turn.tool_uses else "end_turn", "stop_sequence": None}
    last: dict[str, Any] = {"type": "message_delta", "delta": reason}
    if not omit_usage:
        last["usage"] = {"output_tokens": output_tokens}
    return [
        *events,
        _event(last, "message_delta"),
        _event({"type": "message_stop"}, "message_stop"),
    ]


# Gemini


def _candidates(
    path: str, body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool
) -> dict[str, Any]:
    input_tokens, output_tokens = turn.token_counts(body)
    if path.endswith(":countTokens"):
        return {"totalTokens": input_tokens}
    if path.endswith(":embedContent"):
        return {"embedding": {"values": [0.0, 1.0]}}
    parts = [
        {"text": turn.text},
        *({"functionCall": {"name": u.name, "args": u.arguments}} for u in turn.tool_uses),
    ]
    answer = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]
    }
    usage = {
        "promptTokenCount": input_tokens,
        "candidatesTokenCount": output_tokens,
        "totalTokenCount": input_tokens + output_tokens,
    }
    return answer if omit_usage else {**answer, "usageMetadata": usage}


def _candidate_events(body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool) -> list[bytes]:
    rows = [
        {"candidates": [{"content": {"role": "model", "parts": [{"text": chunk}]}}]}
        for chunk in turn.chunks
    ]
    return [
        _event(row)
        for row in [
            *rows,
            _candidates(
                "",
                body,
                ModelTurn(tool_uses=turn.tool_uses, tokens=turn.token_counts(body)[1]),
                omit_usage,
            ),
        ]
    ]


def _embeddings(
    _path: str, body: Mapping[str, Any], turn: ModelTurn, _silent: bool
) -> dict[str, Any]:
    input_tokens = turn.token_counts(body)[0]
    rows = [{"object": "embedding", "index": 0, "embedding": [0.0, 1.0]}]
    return {
        "object": "list",
        "data": rows,
        "usage": {"prompt_tokens": input_tokens, "total_tokens": input_tokens},
    }


FORMATS: Final = (
    ApiFormat(
        matches=lambda path: path.endswith("/chat/completions"),
        is_stream=_is_stream,
        count_turns=_role_counter("messages", "assistant"),
        build_body=_chat,
        build_events=_chat_events,
    ),
    ApiFormat(
        matches=lambda path: path.endswith("/responses"),
        is_stream=_is_stream,
        count_turns=_count_model_turns,
        build_body=_response,
        build_events=_response_events,
    ),
    ApiFormat(
        matches=lambda path: "/v1/messages" in path,
        is_stream=_is_stream,
        count_turns=_role_counter("messages", "assistant"),
        build_body=_message,
        build_events=_message_events,
    ),
    ApiFormat(
        matches=lambda path: "/models/" in path and ":" in path,
        is_stream=lambda path, _body: ":stream" in path,
        count_turns=_role_counter("contents", "model"),
        build_body=_candidates,
        build_events=_candidate_events,
    ),
    ApiFormat(
        matches=lambda path: path.endswith("/embeddings"),
        is_stream=lambda _path, _body: False,
        count_turns=lambda _body: 0,
        build_body=_embeddings,
        build_events=lambda _body, _said, _silent: (),
    ),
)
