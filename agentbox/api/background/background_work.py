"""Background work of the API: imports boot events, watches the seal, handles changes of readiness.
Starts and stops the drift watcher, too.
"""

import asyncio
from typing import TYPE_CHECKING, Any

import structlog

from agentbox.api.background.agent_events import journal_agent_events
from agentbox.api.background.autostart import autostart, autostart_names
from agentbox.api.background.boot_events import BootEvents, flush
from agentbox.api.background.canaries import CanaryWatcher
from agentbox.api.background.denials import follow_denials
from agentbox.api.background.drift import DriftWatcher
from agentbox.api.background.state_sweep import sweep
from agentbox.api.parts import ApiParts
from agentbox.box.readiness.box_requirements import proves_sandbox
from agentbox.box.supervision.boot_log import rotate
from agentbox.box.supervision.sentinel import read_sentinel
from agentbox.core.background.tasks import log_failures
from agentbox.core.slot_errors import AdapterError

if TYPE_CHECKING:
    from agentbox.box.readiness.evaluator import Verdict

POLL_SECONDS = 0.5
_log = structlog.get_logger()


class BackgroundWork:
    """Runs from `start` to `stop`."""

    def __init__(self, services: ApiParts, drift: DriftWatcher) -> None:
        self._services, self._drift = services, drift
        self._boot_events = BootEvents(
            services.paths, services.plan.name, services.boot.boot_id, services.slots.events
        )
        self._job: asyncio.Task[None] | None = None
        self._agent_events: asyncio.Task[None] | None = None
        self._denials: asyncio.Task[None] | None = None
        self._canary_reports: asyncio.Task[None] | None = None
        self._autostart: asyncio.Task[None] | None = None
        self._state_sweep: asyncio.Task[None] | None = None
        self.canaries = CanaryWatcher()
        self._pids: dict[str, int] = {}
        self.sealed_at: str | None = None
        self.sealed_after: float | None = None

    def start(self) -> None:
        self._job = asyncio.ensure_future(self._run())
        self._job.add_done_callback(log_failures("background work"))
        if self._services.boot.boot_id:
            self._drift.start()
        self._agent_events = journal_agent_events(self._services)
        if self._agent_events is not None:
            self._agent_events.add_done_callback(log_failures("record of agents"))
        self._denials = asyncio.ensure_future(follow_denials(self._services))
        self._denials.add_done_callback(log_failures("denial counters"))
        if autostart_names(self._services):
            self._autostart = asyncio.ensure_future(autostart(self._services))
            self._autostart.add_done_callback(log_failures("autostart"))
        if self._services.plan.slots["orchestrator"].use == "local-process":
            self._state_sweep = asyncio.ensure_future(
                sweep(
                    self._services.slots,
                    self._services.plans,
                    self._services.ready_once if self._services.boot.boot_id else None,
                )
            )
            self._state_sweep.add_done_callback(log_failures("state sweep"))
        if proves_sandbox(self._services.plan):
            self._canary_reports = asyncio.ensure_future(self.canaries.follow(self._services))
            self._canary_reports.add_done_callback(log_failures("canary reports"))

    async def stop(self) -> None:
        """Imports once more, then stops. Idempotent."""
        if self._job is None:
            return
        await self._drift.stop()
        started = (
            self._job,
            self._agent_events,
            self._denials,
            self._canary_reports,
            self._autostart,
            self._state_sweep,
        )
        jobs = {job for job in started if job is not None}
        self._job = self._agent_events = self._denials = self._canary_reports = self._autostart = (
            self._state_sweep
        ) = None
        for job in jobs:
            job.cancel()
        await asyncio.wait(jobs)
        await flush(self._boot_events)

    async def _run(self) -> None:
        while True:
            self.read_seal()
            self._count_starts()
            self._rotate_log()
            if self._services.plan.slots["events"].use != "off":
                await self._import_events()
            await asyncio.sleep(POLL_SECONDS)

    async def _import_events(self) -> None:
        try:
            while lines := await self._boot_events.import_new():
                for line in lines:
                    self._record_phase(line)
            await self._boot_events.record_seal()
        except AdapterError as error:
            _log.debug("boot events not imported yet", reason=error.message)

    def read_seal(self) -> None:
        """Reads the sentinel until it exists; then the time and duration of the seal are known."""
        if (
            self.sealed_at is None
            and (sentinel := read_sentinel(self._services.paths.sentinel)) is not None
        ):
            if sentinel.document.get("boot_id") != self._services.boot.boot_id:
                return
            self.sealed_at = str(sentinel.document["completed_at"])
            self.sealed_after = float(sentinel.document["elapsed_seconds"])

    def _count_starts(self) -> None:
        """A new pid counts as a start. One that lived only between two polls is missed."""
        for name, process in self._services.requirements.programs.processes.items():
            if process.pid and self._pids.get(name) != process.pid:
                self._pids[name] = process.pid
                self._services.metrics.starts.labels(name).inc()

    def _rotate_log(self) -> None:
        try:
            rotate(self._services.paths)
        except OSError as error:
            _log.debug("box log not rotated", reason=error.strerror)

    @property
    def sealed_sha256(self) -> str | None:
        """The hash of the sentinel in the journal, None without one."""
        return self._boot_events.sealed_sha256

    def _record_phase(self, line: dict[str, Any]) -> None:
        if line["event"] == "PhaseCompleted":
            self._services.metrics.boot_seconds.labels(str(line["phase"])).set(line["ms"] / 1000)

    def on_verdict_change(self, old: "Verdict", new: "Verdict") -> None:
        """Called by the evaluator for every changed verdict."""
        metrics = self._services.metrics
        metrics.ready.set(new.ready)
        self._measure_requirements()
        if new.ready:
            self._services.ready_once.set()
        if old.ready != new.ready:
            metrics.transitions.labels("ready" if new.ready else "unready").inc()
            transition = {"from": _verdict_name(old), "to": _verdict_name(new)}
            self._services.emit_event("ReadinessChanged", missing=list(new.missing), **transition)

    def _measure_requirements(self) -> None:
        for family, met in self._services.evaluator.met().items():
            self._services.metrics.requirement.labels(family).set(met)


def _verdict_name(verdict: "Verdict") -> str:
    return "ready" if verdict.ready else "unready"
