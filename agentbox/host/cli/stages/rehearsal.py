"""A throw-away box beside the real one: the same plan, without ports or a network, on volumes of
its own. It is held, so it starts, sends and admits nothing, and it is removed whatever happens; if
this command is killed, by the next one.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agentbox.box.supervision.secrets import is_placeholder
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.files.atomic_text import wrap_os_errors, write_atomically
from agentbox.core.records.wire import to_json
from agentbox.host.cli.context import CliContext
from agentbox.host.cli.stages.trial_checks import TrialFailed, compare_state
from agentbox.host.engines.interrupts import deferred_interrupts
from agentbox.host.engines.locations import process_root, rehearsal_of
from agentbox.host.engines.one_shot import OneShot
from agentbox.host.engines.readiness import boot_failure, boot_lines
from agentbox.host.engines.registry import engine_by_name
from agentbox.host.engines.state import BoxRecord, BoxState
from agentbox.host.uninstall.inventory import Inventory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from agentbox.client.state_report import StateReport
    from agentbox.host.engines.base import Engine, StartSpec

_MODULE: Final = "agentbox.client.state_report"
_ENGINE, _LOCK = "engine", "rehearsal"
_REPORT_WAIT_SECONDS: Final = 5.0
_REPORT_SECONDS: Final = 180.0  # an agent, and a busy machine
_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True)
class Rehearsal:
    """The box: `spec` is how it is started."""

    cli: CliContext
    engine: Engine
    spec: StartSpec

    def shot(self, module: str, *arguments: str) -> OneShot:
        """A program of the box on its volumes, while it is down."""
        return OneShot(
            name=self.spec.name,
            state=self.spec.state,
            module=module,
            arguments=arguments,
            image=self.spec.local_id or self.spec.image_ref,
            seconds=self.cli.timeout or 24 * 3600,
        )

    def try_out(
        self, noted: Mapping[str, Any], *, seconds: float, settle: float = 0.0, agent: bool = False
    ) -> StateReport:
        """Starts it held and compares what it shows with what was noted. Raises TrialFailed."""
        self.engine.run_once(self.shot("agentbox.api.stores", "hold", "0"), "hold the rehearsal")
        record = self.engine.start(self.spec)
        report = self._wait_for_report(record, noted, seconds, settle, agent)
        known = set(noted.get("degraded", report.degraded))
        if lost := set(report.degraded) - known:
            raise TrialFailed(f"what worked before it does not: {', '.join(sorted(lost))}")
        if report.state is not None:
            compare_state(report.state, noted, lambda _seq: report.record_hash)
        if report.failure:
            raise TrialFailed(report.failure)
        return report

    def _wait_for_report(
        self,
        record: BoxRecord,
        noted: Mapping[str, Any],
        seconds: float,
        settle: float,
        agent: bool,
    ) -> StateReport:
        """Asks until the box is ready. Raises TrialFailed."""
        from agentbox.client.state_report import ReportRequest, StateReport

        token = self.spec.secrets.get(self.spec.plan.api.token_env, "")
        request = ReportRequest(
            port=self.spec.plan.api.port,
            seconds=_REPORT_WAIT_SECONDS,
            token="" if is_placeholder(token) else token,
            seq=int(noted.get("journal_seq", -1)),
            agent=agent,
            settle=settle,
        )
        began, why = time.monotonic(), ""
        while (waited := time.monotonic() - began) < seconds:
            try:
                text = self.engine.run_inside(record, _MODULE, to_json(request), _REPORT_SECONDS)
                report = StateReport.from_wire(json.loads(text))
            except AgentboxError as error:
                report = StateReport(missing=(error.message,))
            if not report.missing:
                return report
            why = ", ".join(report.missing)
            self.cli.out.redraw(f"waiting {waited:.1f} s  missing: {why}")
            lines = boot_lines(self.engine, record)
            ended = self.engine.inspect(record).state != "running"
            if failure := boot_failure(lines, any_boot=ended) or ("the box ended" if ended else ""):
                raise TrialFailed(failure)
            time.sleep(_POLL_SECONDS)
        raise TrialFailed(f"after {seconds:.0f} s still missing: {why}")


@contextmanager
def rehearsal_box(cli: CliContext, engine: Engine, spec: StartSpec) -> Iterator[Rehearsal]:
    """Nothing of it is there before and after. Raises AgentboxError: exit 7 if another command
    rehearses.
    """
    state = rehearsal_of(cli.state())
    name = state.directory.name
    with cli.state().exclusive_lock(name=_LOCK):
        _remove(state)
        try:
            state.make()
            write_atomically(state.directory / _ENGINE, f"{engine.name}\n")
            inventory = Inventory(state.directory.parent)
            if engine.name == "process":
                inventory.add_directory("process-root", process_root(name, state))
            spec = replace(
                spec, state=state, box=name, offline=True, project=None, volumes={}, recreate=True
            )
            yield Rehearsal(cli, engine, spec)
        finally:
            with deferred_interrupts():
                _remove(state)


def remove_leftover(cli: CliContext) -> None:
    """Removes the box of a rehearsal that was killed; does nothing while one goes on."""
    try:
        with cli.state().exclusive_lock(name=_LOCK):
            _remove(rehearsal_of(cli.state()))
    except AgentboxError as error:
        if error.exit_code is ExitCode.BUSY:
            return
        raise
    cli.out.note("a rehearsal was interrupted: its box is removed")


def _remove(state: BoxState) -> None:
    """The caller has the lock. What is gone is no error; the folder with the trace is last."""
    name, file = state.directory.name, state.directory / _ENGINE
    root = process_root(name, state)
    if file.exists():
        engine = engine_by_name(file.read_text().strip())
        folder = str(state.compose_dir) if engine.name == "docker" else ""
        if folder or root.exists():
            record = BoxRecord(
                engine=engine.name, name=name, api_url="", folder=folder, root=str(root)
            )
            engine.remove(record, volumes=True)
    inventory = Inventory(state.directory.parent)
    volumes = [row for row in inventory.names("volume") if row.startswith(f"{name}-")]
    inventory.take_back("volume", *volumes)
    inventory.take_back("process-root", root)
    with wrap_os_errors(f"remove {state.directory}"), suppress(FileNotFoundError):
        shutil.rmtree(state.directory)
    inventory.take_back("box", name)
