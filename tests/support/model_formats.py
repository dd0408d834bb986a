"""A model response in the formats of several vendors, complete and streamed (their API references,
2026).
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from support.anthropic_format import build_message, message_events
from support.model_turns import ApiFormat, ModelTurn, make_id, server_event


def _is_stream(_path: str, body: Mapping[str, Any]) -> bool:
    return body.get("stream") is True


def _role_counter(name: str, role: str) -> Callable[[Mapping[str, Any]], int]:
    return lambda body: sum(row.get("role") == role for row in body.get(name, ()))


# OpenAI: chat completions


def _chat(_path: str, body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool) -> dict[str, Any]:
    calls = [
        {
            "id": make_id("call", body, n),
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
        "id": make_id("chat", body),
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
        return server_event(
            {
                "id": make_id("chat", body),
                "object": "chat.completion.chunk",
                "model": body.get("model"),
                "choices": [row],
            }
        )

    calls = [
        {
            "index": n,
            "id": make_id("call", body, n),
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
            server_event(
                {
                    "id": make_id("chat", body),
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
                "id": make_id("msg", body),
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            }
        )
    for n, use in enumerate(turn.tool_uses):
        shared = {
            "id": make_id("fc", body, n),
            "call_id": make_id("call", body, n),
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
        "id": make_id("resp", body),
        "object": "response",
        "status": "completed",
        "model": body.get("model"),
        "output": _items(body, turn),
    }
    return answer if omit_usage else {**answer, "usage": usage}


def _response_events(body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool) -> list[bytes]:
    number = iter(range(1_000_000))

    def event(name: str, **members: Any) -> bytes:
        return server_event({"type": name, "sequence_number": next(number), **members}, name)

    initial: dict[str, Any] = {
        "id": make_id("resp", body),
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


# Gemini


def _candidates(
    path: str, body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool
) -> dict[str, Any]:
    input_tokens, output_tokens = turn.token_counts(body)
    if path.endswith(":countTokens"):
        return {"totalTokens": input_tokens}
    if path.endswith(":embedContent"):
        return {"embedding": {"values": [0.0, 1.0]}}
    text = [{"text": turn.text}] if turn.text or not turn.tool_uses else []
    parts = [
        *text,
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
        server_event(row)
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
        build_body=build_message,
        build_events=message_events,
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
