"""Collects the times of this boot for `boot explain`."""

from agentbox.box.boot.runner import read_phases
from agentbox.box.seal.program_watcher import ProgramReady, ProgramWatcher
from agentbox.box.supervision.boot_record import BootRecord
from agentbox.box.supervision.boot_timeline import BootFailure, BootTimeline, PhaseSpan, ProgramSpan
from agentbox.core.linux import procfs
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan, Program
from agentbox.plan.names import SEAL


def sealed_timeline(
    paths: Paths,
    record: BootRecord,
    plan: Plan,
    watcher: ProgramWatcher,
    sealed: float | None,
    failure: BootFailure | None,
) -> BootTimeline:
    """`sealed` is a time of CLOCK_BOOTTIME in seconds, None when the seal failed."""
    phases = tuple(
        PhaseSpan(row["id"], _since_start(record, row["start"]), row["ms"], row["budget_ms"])
        for row in read_phases(paths)
    )
    return BootTimeline(
        boot_id=record.boot_id,
        started_at=record.started_at,
        plan_digest=plan.digest,
        previous_shutdown=record.previous.shutdown,
        phases=phases,
        programs=tuple(
            _program_span(record, program, watcher, sealed) for program in plan.programs
        ),
        exec_ms=_end_of_stage_a(phases),
        sealed_ms=None if sealed is None else _since_start(record, sealed),
        failure=failure,
    )


def _end_of_stage_a(phases: tuple[PhaseSpan, ...]) -> float | None:
    """Phase 5 is the last of Stage A; exec follows it."""
    return next((round(span.start_ms + span.ms, 1) for span in phases if span.id == "5"), None)


def _program_span(
    record: BootRecord, program: Program, watcher: ProgramWatcher, sealed: float | None
) -> ProgramSpan:
    """The row of the seal itself ends with the sentinel."""
    pid, ticks = watcher.first_process(program.name)
    proven: ProgramReady | None = watcher.ready_programs().get(program.name)
    moment = sealed if program.name == SEAL else proven.ready if proven else None
    ready = None if moment is None else _since_start(record, moment)
    spawned = _since_start(record, procfs.ticks_to_seconds(ticks)) if pid and ticks else None
    return ProgramSpan(program.name, program.required, spawned, ready)


def _since_start(record: BootRecord, moment: float) -> float:
    return round((moment - record.started) * 1000, 1)
