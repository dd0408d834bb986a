"""Follows the boot: imports its events into the journal, reads the seal, counts the starts of
programs, and rotates its log.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

import structlog

from agentbox.api.background.boot_events import BootEvents, flush
from agentbox.api.metrics.box_metrics import BoxMetrics
from agentbox.box.supervision.log_rotation import rotate
from agentbox.box.supervision.sentinel import read_sentinel
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError

POLL_SECONDS = 0.5
_log = structlog.get_logger()


class SupervisedProcess(Protocol):
    """A supervised process; `pid` is 0 while it does not run."""

    @property
    def pid(self) -> int: ...


class Programs(Protocol):
    """The supervised programs by name."""

    @property
    def processes(self) -> Mapping[str, SupervisedProcess]: ...


class BootWatch:
    """`sealed_at` and `sealed_after`, in seconds, are None until the box is sealed."""

    def __init__(
        self,
        paths: Paths,
        boot_id: str,
        events: BootEvents,
        programs: Programs,
        metrics: BoxMetrics,
        *,
        imports: bool,
    ) -> None:
        """`imports`: there is a journal."""
        self._paths, self._boot_id, self._events = paths, boot_id, events
        self._programs, self._metrics, self._imports = programs, metrics, imports
        self._pids: dict[str, int] = {}
        self.sealed_at: str | None = None
        self.sealed_after: float | None = None

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            self.read_seal()
            self._count_starts()
            self._rotate_log()
            if self._imports:
                await self._import_events()
            await asyncio.sleep(POLL_SECONDS)

    async def flush(self) -> None:
        """Imports what is left, before the journal closes."""
        await flush(self._events)

    def read_seal(self) -> None:
        """Reads the sentinel until it exists; then the time and duration of the seal are known."""
        if self.sealed_at is None and (sentinel := read_sentinel(self._paths.sentinel)) is not None:
            if sentinel.document.get("boot_id") != self._boot_id:
                return
            self.sealed_at = str(sentinel.document["completed_at"])
            self.sealed_after = float(sentinel.document["elapsed_seconds"])

    async def _import_events(self) -> None:
        try:
            while lines := await self._events.import_new():
                for line in lines:
                    self._record_phase(line)
            await self._events.record_seal()
        except AdapterError as error:
            _log.debug("boot events not imported yet", reason=error.message)

    def _record_phase(self, line: Mapping[str, Any]) -> None:
        if line["event"] == "PhaseCompleted":
            self._metrics.boot_seconds.labels(str(line["phase"])).set(line["ms"] / 1000)

    def _count_starts(self) -> None:
        """A new pid counts as a start. One that lived only between two polls is missed."""
        for name, process in self._programs.processes.items():
            if process.pid and self._pids.get(name) != process.pid:
                self._pids[name] = process.pid
                self._metrics.starts.labels(name).inc()

    def _rotate_log(self) -> None:
        try:
            rotate(self._paths)
        except OSError as error:
            _log.debug("box log not rotated", reason=error.strerror)
