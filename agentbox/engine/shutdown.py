"""How a box ended: clean, when its last words say that everything was flushed and closed."""

from __future__ import annotations

import json

from agentbox.engine.base import Engine
from agentbox.engine.state import BoxRecord

_LAST_LINES = 60


def shutdown_mark(engine: Engine, record: BoxRecord) -> str:
    """`clean, drained in 1.2 s` or `unclean`, read from the box's own last log lines."""
    for line in reversed(list(engine.logs(record, follow=False, lines=_LAST_LINES, since=None))):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == "ShutdownCompleted":
            return f"clean, drained in {float(event.get('drained_ms', 0)) / 1000:.1f} s"
    return "unclean"
