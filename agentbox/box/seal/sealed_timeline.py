"""Puts together when everything of this boot happened, for `boot explain`."""

from agentbox.box.boot.runner import read_phases
from agentbox.box.seal.watch import Running, Watch
from agentbox.box.supervision.boot_record import BootRecord
from agentbox.box.supervision.timeline import Failure, PhaseSpan, ProgramSpan, Timeline
from agentbox.core.linux import procfs
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan, Program
from agentbox.plan.names import SEAL


def timeline_of(
    paths: Paths, record: BootRecord, plan: Plan, watch: Watch, sealed: float | None, failure: Failure | None
) -> Timeline:
    """`sealed` is a moment of CLOCK_BOOTTIME in seconds, None when the seal failed."""
    phases = tuple(
        PhaseSpan(row["id"], _since(record, row["start"]), row["ms"], row["budget_ms"]) for row in read_phases(paths)
    )
    return Timeline(
        boot_id=record.boot_id,
        started_at=record.started_at,
        plan_digest=plan.digest,
        previous_shutdown=record.previous.shutdown,
        phases=phases,
        programs=tuple(_program(record, program, watch, sealed) for program in plan.programs),
        exec_ms=_end_of_stage_a(phases),
        sealed_ms=None if sealed is None else _since(record, sealed),
        failure=failure,
    )


def _end_of_stage_a(phases: tuple[PhaseSpan, ...]) -> float | None:
    """Phase 5 is Stage A's last; exec follows it."""
    return next((round(span.start_ms + span.ms, 1) for span in phases if span.id == "5"), None)


def _program(record: BootRecord, program: Program, watch: Watch, sealed: float | None) -> ProgramSpan:
    """The seal's own row ends with the sentinel."""
    pid, ticks = watch.first_seen(program.name)
    found: Running | None = watch.running().get(program.name)
    moment = sealed if program.name == SEAL else found.ready if found else None
    ready = None if moment is None else _since(record, moment)
    spawned = _since(record, procfs.seconds_of(ticks)) if pid and ticks else None
    return ProgramSpan(program.name, program.required, spawned, ready)


def _since(record: BootRecord, moment: float) -> float:
    return round((moment - record.started) * 1000, 1)
