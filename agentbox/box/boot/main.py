"""The composition root of the boot: the phases and their order. Stage A is PID 1 and becomes
supervisord.
"""

import os
import signal
import sys
from contextlib import suppress

from agentbox.box.boot.context import Context
from agentbox.box.boot.runner import Phase, record_phase, report_failure, run_phases
from agentbox.box.boot.stage_b import resume
from agentbox.box.boot.steps import (
    b6_programs,
    b8_hints,
    p0_5_posture,
    p0_begin,
    p1_roots,
    p2_secrets,
    p3_identity,
    p4_workspace,
    p5_artifacts,
)
from agentbox.box.supervision.boot_event_log import read_events
from agentbox.box.supervision.boot_timeline import store_timeline
from agentbox.box.supervision.notify import notify
from agentbox.core.linux import procfs
from agentbox.core.paths import Paths, environment
from agentbox.plan.names import BOOTSTRAP, STAGE_B, STAGE_VARIABLE

_TERMINATED = 128 + signal.SIGTERM

PHASES_A = tuple(
    Phase(step.PHASE, step.BUDGET_MS, step.run)
    for step in (p0_5_posture, p1_roots, p2_secrets, p3_identity, p4_workspace, p5_artifacts)
)
PHASES_B = tuple(Phase(step.PHASE, step.BUDGET_MS, step.run) for step in (b6_programs, b8_hints))


def main() -> int:
    """Returns an exit code, or does not return: a successful Stage A ends in exec."""
    paths = Paths.for_this_process()
    if environment().get(STAGE_VARIABLE) == STAGE_B:
        return _stage_b(paths)
    # PID 1 ignores signals without a handler, and `docker stop` must not wait for its grace period.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    context = _begin(paths)
    if context is None:
        return 1
    if not run_phases(context, PHASES_A):
        _store_failure(context)
        return 1
    return _exec_supervisord(context)


def _stage_b(paths: Paths) -> int:
    """The exit code is the result; the note gives the seal the pid once supervisord has dropped
    it.
    """
    if not run_phases(resume(paths, environment()), PHASES_B):
        return 1
    notify(paths, BOOTSTRAP)
    return 0


def _begin(paths: Paths) -> Context | None:
    start = procfs.now()
    log = p0_begin.new_log(paths, environment())
    try:
        context = p0_begin.begin(paths, environment(), log)
    except Exception as error:  # noqa: BLE001  (every failure must end as one event)
        report_failure(log, p0_begin.PHASE, error)
        return None
    record_phase(paths, context.log, p0_begin.PHASE, start, p0_begin.BUDGET_MS)
    return context


def _store_failure(context: Context) -> None:
    """Adds this boot to `boot history` if the state volume is writable (phase 1 has reported the
    reason otherwise).
    """
    from agentbox.box.seal.event_timeline import (
        timeline_from_events,
    )  # not needed by a successful boot

    timeline = timeline_from_events(read_events(context.paths))
    if timeline is not None:
        with suppress(OSError):
            store_timeline(context.paths, timeline)


def _exec_supervisord(context: Context) -> int:
    context.emit("SupervisorStarting", programs=[program.name for program in context.plan.programs])
    python = str(context.paths.python)
    argv = [
        python,
        "-I",
        "-m",
        "agentbox.box.boot.supervisord",
        "-n",
        "-c",
        str(context.supervisord_conf),
    ]
    os.execve(python, argv, dict(environment()))
