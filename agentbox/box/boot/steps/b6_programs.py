"""Phase B6: every program can run on this machine, and the files that a boot needs first match the
record of the image.

The probe `image-files` compares all files after the seal (agentbox/box/probes/layer_files.py).
"""

from pathlib import Path

from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError
from agentbox.box.probes.executable import executable_fault
from agentbox.box.probes.layer_files import boot_files, file_faults, recorded_files

PHASE, BUDGET_MS = "B6", 80


def run(context: Context) -> None:
    """Emits `MissingArtifactDetected` for each fault, then raises BootError naming the first."""
    paths = context.paths
    problems = [*_program_faults(context), *file_faults(paths, boot_files(recorded_files(paths)))]
    for path, reason in problems:
        context.emit("MissingArtifactDetected", capability=path, reason=reason)
    if problems:
        path, reason = problems[0]
        raise BootError(
            f"cannot run this box: {path} {reason}", "Build the image again: `agentbox build`."
        )


def _program_faults(context: Context) -> list[tuple[str, str]]:
    paths = context.paths
    problems = []
    for program in context.plan.programs:
        box_path = paths.resolve(program.argv[0])
        path = box_path if paths.is_container or box_path.exists() else Path(program.argv[0])
        if reason := executable_fault(path):
            problems.append((program.argv[0], reason))
    return problems
