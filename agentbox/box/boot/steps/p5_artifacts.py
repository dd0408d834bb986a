"""Phase 5: checks the artifacts that the enabled features need; then writes everything that
supervisord needs.
"""

import hashlib
import shutil

from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError
from agentbox.box.boot.record import boot_record
from agentbox.box.probes.base import ProbeResult
from agentbox.box.probes.suite import run_probes
from agentbox.box.supervision.boot_event_log import BootEventLog
from agentbox.box.supervision.current_boot import mark_running
from agentbox.box.supervision.secrets import SUPERVISOR_USER, write_program_token
from agentbox.core.files.atomic import replace
from agentbox.plan.names import AGENT_HOST, GATEWAY

PHASE, BUDGET_MS = "5", 200
TOKEN_PROGRAMS = (AGENT_HOST, GATEWAY)  # programs that call the API with a token of this boot


def run(context: Context) -> None:
    """Raises BootError naming each required probe that failed. Only a boot that passes this phase
    counts as running: one that fails here has opened no slot, and the mark of the last shutdown
    stays.
    """
    _check_artifacts(context)
    _write_tokens(context)
    boot_record(context).write(context.paths)
    mark_running(context.paths, context.log.boot_id)


def report_results(log: BootEventLog, results: list[ProbeResult]) -> None:
    """Emits one event per probe, in the order of the plan."""
    for result in results:
        if result.passed:
            log.emit("CapabilityValidated", capability=result.id, ms=result.ms)
        elif result.required:
            log.emit("MissingArtifactDetected", capability=result.id, reason=result.detail)
        else:
            log.emit("OptionalArtifactMissing", capability=result.id, reason=result.detail)


def _check_artifacts(context: Context) -> None:
    shutil.rmtree(
        context.paths.probe_homes, ignore_errors=True
    )  # of probes that were interrupted by the end of the last boot
    results = run_probes(
        context.plan, context.paths, "boot", force_missing=context.hooks.force_missing
    )
    report_results(context.log, results)
    failed = [result for result in results if not result.passed]
    required = [result for result in failed if result.required]
    if required:
        failures = "; ".join(f"{result.id} ({result.detail})" for result in required)
        raise BootError(
            f"cannot start without required artifacts: {failures}",
            "Build the image again: `agentbox build`.",
        )
    context.optional_missing = tuple(result.id for result in failed)
    context.emit(
        "RuntimeClosureValidated",
        probes=len(results),
        required=sum(result.required for result in results),
        optional_missing=list(context.optional_missing),
    )


def _write_tokens(context: Context) -> None:
    """supervisord's own credentials go through a file included by its configuration, in its
    format.
    """
    for program in context.plan.programs:
        if program.name in TOKEN_PROGRAMS:
            write_program_token(context.paths, program.name)
    token = write_program_token(context.paths, "supervisor")
    password = hashlib.sha1(token.encode(), usedforsecurity=False).hexdigest()
    text = f"[unix_http_server]\nusername={SUPERVISOR_USER}\npassword={{SHA}}{password}\n"
    replace(context.paths.supervisor_auth, text.encode(), mode=0o400, durable=False)
