"""Phase B6: every program can run on this machine, and the files that a boot needs first are as the image's record says.

The probe `image-files` compares all files after the seal (agentbox/box/probes/layer_files.py).
"""

from pathlib import Path

from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError
from agentbox.box.probes.executable import why_not_executable
from agentbox.box.probes.layer_files import faults, needed_first, recorded

PHASE, BUDGET_MS = "B6", 80


def run(context: Context) -> None:
    """`MissingArtifactDetected` for each fault; then BootError naming the first."""
    paths = context.paths
    found = [*_program_faults(context), *faults(paths, needed_first(recorded(paths)))]
    for path, reason in found:
        context.emit("MissingArtifactDetected", capability=path, reason=reason)
    if found:
        path, reason = found[0]
        raise BootError(f"cannot run this box: {path} {reason}", "Build the image again: `agentbox build`.")


def _program_faults(context: Context) -> list[tuple[str, str]]:
    paths = context.paths
    found = []
    for program in context.plan.programs:
        own = paths.at(program.argv[0])
        path = own if paths.contained or own.exists() else Path(program.argv[0])
        if why := why_not_executable(path):
            found.append((program.argv[0], why))
    return found
