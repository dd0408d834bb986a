"""Anthropic's messages, complete and streamed."""

import json
from collections.abc import Mapping
from typing import Any

from support.model_turns import ModelTurn, make_id, server_event, split_text


def _blocks(body: Mapping[str, Any], turn: ModelTurn) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": turn.text}] if turn.text else []
    uses = [
        {"type": "tool_use", "id": make_id("toolu", body, n), "name": u.name, "input": u.arguments}
        for n, u in enumerate(turn.tool_uses)
    ]
    return [*text, *uses]


def build_message(
    path: str, body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool
) -> dict[str, Any]:
    input_tokens, output_tokens = turn.token_counts(body)
    if path.endswith("/count_tokens"):
        return {"input_tokens": input_tokens}
    answer = {
        "id": make_id("msg", body),
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


def message_events(body: Mapping[str, Any], turn: ModelTurn, omit_usage: bool) -> list[bytes]:
    input_tokens, output_tokens = turn.token_counts(body)
    initial = {**build_message("", body, turn, True), "content": [], "stop_reason": None}
    initial["usage"] = {"input_tokens": input_tokens, "output_tokens": 1}
    events = [server_event({"type": "message_start", "message": initial}, "message_start")]
    for index, block in enumerate(_blocks(body, turn)):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        text = turn.text if block["type"] == "text" else json.dumps(block["input"])
        kind = (
            ("text_delta", "text")
            if block["type"] == "text"
            else ("input_json_delta", "partial_json")
        )
        events.append(
            server_event(
                {"type": "content_block_start", "index": index, "content_block": empty},
                "content_block_start",
            )
        )
        for chunk in split_text(text, turn.chunk_size):
            delta = {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": kind[0], kind[1]: chunk},
            }
            events.append(server_event(delta, "content_block_delta"))
        events.append(
            server_event({"type": "content_block_stop", "index": index}, "content_block_stop")
        )
    reason = {"stop_reason": "tool_use" if turn.tool_uses else "end_turn", "stop_sequence": None}
    last: dict[str, Any] = {"type": "message_delta", "delta": reason}
    if not omit_usage:
        last["usage"] = {"output_tokens": output_tokens}
    return [
        *events,
        server_event(last, "message_delta"),
        server_event({"type": "message_stop"}, "message_stop"),
    ]
