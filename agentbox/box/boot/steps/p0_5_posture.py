"""Phase 0.5: is the root immutable, does the kernel enforce what the plan promises, is the manifest the baked one."""

from agentbox.box.boot import drift
from agentbox.box.boot.confine import confine, writable
from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError
from agentbox.box.posture.drift import compare
from agentbox.box.posture.measured import measured, summary
from agentbox.box.posture.promised import promised
from agentbox.box.supervision.boot_record import Drifted

PHASE, BUDGET_MS = "0.5", 70


def run(context: Context) -> None:
    """Events for all of it. Strict mode fails on the first thing that is not as planned."""
    if not context.paths.contained:
        confine(context.paths, context.baked)
    _check_root(context)
    drift.settle(context)
    _check_posture(context)
    context.emit(
        "SecurityProfileApplied",
        baseline="container" if context.paths.contained else "process",
        exceptions=[delta.key for delta in context.plan.exceptions],
        seccomp_digest=context.plan.digests.seccomp,
    )


def _check_root(context: Context) -> None:
    """In a container the application's folder, under the process engine the folder above the prefix."""
    paths = context.paths
    folder = paths.app if paths.contained else paths.prefix.parent
    if not writable(folder):
        return
    context.emit("ImmutableRootWritable", path=str(folder))
    if context.strict or context.strict_root:
        raise BootError(
            f"cannot go on in strict mode: {folder} is writable", "Start the box with the generated compose file."
        )


def _check_posture(context: Context) -> None:
    expected = promised(context.plan, context.paths, context.target)
    found = measured(context.plan, context.paths, context.landlock_abi, context.target)
    context.emit("PostureChecked", control="all", expected=expected, found=found)
    drifted = compare(expected, found)
    for row in drifted:
        context.emit("PostureDrift", control=row.control, expected=row.expected, found=row.found)
    context.posture = summary((*context.stale, *drifted))
    if drifted and context.strict:
        raise BootError(
            _sentence(drifted), "Start the box with the generated compose file; its options are the posture."
        )


def _sentence(drifted: tuple[Drifted, ...]) -> str:
    first = drifted[0]
    return f"cannot go on in strict mode: {first.control} is {first.found}, the plan promises {first.expected}"
