"""What a task is made of on the wire, and how its log stream is read."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from agentbox.client.records import LogItem, Task
from agentbox.core.http.sse_parser import SseEvent


def task_body(spec: Mapping[str, Any], timeout_s: float, options: Mapping[str, Any]) -> dict[str, Any]:
    """A TaskBody. `input` in `options` is bytes."""
    rest = {name: value for name, value in options.items() if value is not None and name != "input"}
    given = options.get("input")
    data = {} if given is None else {"input": base64.b64encode(given).decode("ascii")}
    return {"spec": dict(spec), "timeout_s": timeout_s, **rest, **data}


def log_of(event: SseEvent) -> LogItem | Task:
    """A log event, or the finished task."""
    return Task.from_wire(json.loads(event.data)) if event.event == "task" else item_of(event)


def item_of(event: SseEvent) -> LogItem:
    """A piece of output or life."""
    return LogItem.from_wire(json.loads(event.data))
