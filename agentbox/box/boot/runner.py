"""Runs a list of phases: measures each, reports exceeded budgets, and turns any failure into
`BootstrapFailed`.
"""

import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentbox.box.boot.context import Context
from agentbox.box.supervision.boot_event_log import BootEventLog
from agentbox.core.canonical import canonical_json
from agentbox.core.errors import AgentboxError
from agentbox.core.linux import procfs
from agentbox.core.paths import Paths

DEFECT = "This is a bug in agentbox: report it together with this log."


@dataclass(frozen=True)
class Phase:
    """One step of the boot. `budget_ms` is the p95 inside the box. Phase 0 creates the context
    itself.
    """

    id: str
    budget_ms: int
    run: Callable[[Context], None]


def run_phases(context: Context, phases: Sequence[Phase]) -> bool:
    """Runs them in order. Returns False after the first failure, which has been reported."""
    return all(_run(context, phase) for phase in phases)


def record_phase(paths: Paths, log: BootEventLog, phase: str, start: float, budget_ms: int) -> None:
    """Records the end of a phase that started at `start` (seconds of CLOCK_BOOTTIME), in the file
    and as events.
    """
    ms = round((procfs.now() - start) * 1000, 1)
    row = {"id": phase, "start": round(start, 4), "ms": ms, "budget_ms": budget_ms}
    with paths.phases.open("ab") as stream:
        stream.write(canonical_json(row) + b"\n")
    log.emit("PhaseCompleted", phase=phase, ms=ms, budget_ms=budget_ms)
    if ms > budget_ms:
        log.emit("BootPhaseSlow", phase=phase, ms=ms, budget_ms=budget_ms)


def read_phases(paths: Paths) -> list[dict[str, Any]]:
    """The rows of `phases.jsonl` in the order in which the phases ended."""
    if not paths.phases.exists():
        return []
    return [json.loads(line) for line in paths.phases.read_bytes().splitlines()]


def report_failure(log: BootEventLog, phase: str, error: Exception) -> None:
    """Emits `BootstrapFailed`. Anything but AgentboxError and OSError is a bug; its traceback goes
    to stderr.
    """
    if isinstance(error, AgentboxError):
        reason, fix = error.message, error.hint
    elif isinstance(error, OSError):
        reason, fix = (
            f"cannot finish phase {phase}: {error}",
            "Check the path and the reason given by the kernel.",
        )
    else:
        traceback.print_exception(error, file=sys.stderr)
        reason, fix = f"cannot finish phase {phase}: {type(error).__name__}: {error}", DEFECT
    log.emit("BootstrapFailed", phase=phase, reason=reason, fix=fix)


def _run(context: Context, phase: Phase) -> bool:
    start = procfs.now()
    try:
        phase.run(context)
    except Exception as error:  # noqa: BLE001  (every failure must end as one event)
        report_failure(context.log, phase.id, error)
        return False
    record_phase(context.paths, context.log, phase.id, start, phase.budget_ms)
    return True


def elapsed_ms(since: float) -> float:
    """Milliseconds since a `time.monotonic()` value."""
    return round((time.monotonic() - since) * 1000, 1)
