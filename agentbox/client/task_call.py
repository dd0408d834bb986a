"""Task requests and log events."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from agentbox.client.records import LogItem, Task
from agentbox.core.http.sse_parser import SseEvent


def task_body(
    spec: Mapping[str, Any], timeout_s: float, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Builds a TaskBody. `input` in `options` is bytes."""
    members = {
        name: value for name, value in options.items() if value is not None and name != "input"
    }
    input_data = options.get("input")
    encoded_input = (
        {} if input_data is None else {"input": base64.b64encode(input_data).decode("ascii")}
    )
    return {"spec": dict(spec), "timeout_s": timeout_s, **members, **encoded_input}


def parse_log_event(event: SseEvent) -> LogItem | Task:
    """Parses a log event, or the finished task."""
    return (
        Task.from_wire(json.loads(event.data)) if event.event == "task" else parse_log_item(event)
    )


def parse_log_item(event: SseEvent) -> LogItem:
    """Parses an item of output or lifecycle."""
    return LogItem.from_wire(json.loads(event.data))
