"""Phase 0.5: checks that the root is immutable, that the kernel enforces the promised controls, and
that the manifest is the baked one.
"""

from agentbox.box.boot import manifest_drift
from agentbox.box.boot.confine import confine, is_directory_writable
from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError
from agentbox.box.posture.drift import compare
from agentbox.box.posture.measured import measured_controls, summary
from agentbox.box.posture.promised import promised_controls
from agentbox.box.supervision.boot_record import PostureDrift

PHASE, BUDGET_MS = "0.5", 70


def run(context: Context) -> None:
    """Emits events for all of it. Strict mode fails on the first difference."""
    if not context.paths.is_container:
        confine(context.paths, context.baked)
    _check_root(context)
    manifest_drift.select_plan(context)
    _check_posture(context)
    context.emit(
        "SecurityProfileApplied",
        baseline="container" if context.paths.is_container else "process",
        exceptions=[delta.key for delta in context.plan.exceptions],
        seccomp_digest=context.plan.digests.seccomp,
    )


def _check_root(context: Context) -> None:
    """Checks the application's directory in a container, the parent of the prefix under the process
    engine.
    """
    paths = context.paths
    directory = paths.app if paths.is_container else paths.prefix.parent
    if not is_directory_writable(directory):
        return
    context.emit("ImmutableRootWritable", path=str(directory))
    if context.strict or context.strict_root:
        raise BootError(
            f"cannot continue in strict mode: {directory} is writable",
            "Start the box with the generated compose file.",
        )


def _check_posture(context: Context) -> None:
    expected = promised_controls(context.plan, context.paths, context.target)
    actual = measured_controls(context.plan, context.paths, context.landlock_abi, context.target)
    context.emit("PostureChecked", control="all", expected=expected, found=actual)
    drifted = compare(expected, actual)
    for row in drifted:
        context.emit("PostureDrift", control=row.control, expected=row.expected, found=row.found)
    context.posture = summary((*context.stale, *drifted))
    if drifted and context.strict:
        raise BootError(
            _sentence(drifted),
            "Start the box with the generated compose file; its options are the posture.",
        )


def _sentence(drifted: tuple[PostureDrift, ...]) -> str:
    first = drifted[0]
    return (
        "cannot continue in strict mode: "
        f"{first.control} is {first.found}, the plan promises {first.expected}"
    )
