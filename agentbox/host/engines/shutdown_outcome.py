"""How a box ended: clean, if its last log lines report that everything was flushed and closed."""

from __future__ import annotations

from dataclasses import dataclass

from agentbox.host.engines.base import Engine
from agentbox.host.engines.readiness import boot_lines, events_by_boot
from agentbox.host.engines.state import BoxRecord


@dataclass(frozen=True)
class ShutdownOutcome:
    """`tasks`: ids of the tasks that were running and ended with the box."""

    clean: bool
    seconds: float = 0.0
    tasks: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """`clean, drained in 1.2 s, ended no task` or `unclean`."""
        if not self.clean:
            return "unclean"
        ended = f"ended {', '.join(self.tasks)}" if self.tasks else "ended no task"
        return f"clean, drained in {self.seconds:.1f} s, {ended}"


def last_shutdown(engine: Engine, record: BoxRecord) -> ShutdownOutcome:
    """Read from the log of the last boot."""
    for event in events_by_boot(boot_lines(engine, record))[0]:
        if event["event"] == "ShutdownCompleted":
            tasks = tuple(map(str, event.get("tasks_ended", ())))
            return ShutdownOutcome(True, float(event.get("drained_ms", 0)) / 1000, tasks)
    return ShutdownOutcome(False)
