"""How a box ended: clean, when its last words say that everything was flushed and closed."""

from __future__ import annotations

from agentbox.engine.base import Engine
from agentbox.engine.state import BoxRecord
from agentbox.engine.waiting import boot_lines, boots_of


def shutdown_mark(engine: Engine, record: BoxRecord) -> str:
    """`clean, drained in 1.2 s` or `unclean`, read from what the box logged of its last boot."""
    for event in boots_of(boot_lines(engine, record))[0]:
        if event["event"] == "ShutdownCompleted":
            return f"clean, drained in {float(event.get('drained_ms', 0)) / 1000:.1f} s"
    return "unclean"
