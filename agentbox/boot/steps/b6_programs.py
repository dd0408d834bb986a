"""Phase B6: every program can run on this machine, and every layer holds what its record says."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from agentbox.boot.context import Context
from agentbox.boot.errors import BootError
from agentbox.probes.executable import why_not_executable

PHASE, BUDGET_MS = "B6", 80


def run(context: Context) -> None:
    """`MissingArtifactDetected` for each fault; then BootError naming the first."""
    faults = [*_program_faults(context), *_layer_faults(context)]
    for path, reason in faults:
        context.emit("MissingArtifactDetected", capability=path, reason=reason)
    if faults:
        path, reason = faults[0]
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


def _layer_faults(context: Context) -> list[tuple[str, str]]:
    """The image carries one record a layer: the files of each package with their sizes. The process engine has none.

    Every file is looked at: that no count and no sum is wrong follows.
    """
    folders: dict[str, dict[str, int]] = {}
    for record in sorted(context.paths.layer_files.glob("*.json")):
        for package in json.loads(record.read_bytes())["packages"].values():
            for path, size in package["files"].items():
                folder, _, name = path.rpartition("/")
                folders.setdefault(folder, {})[name] = size
    root = str(context.paths.prefix).rstrip("/")
    return [fault for folder, recorded in folders.items() for fault in _folder_faults(root, folder, recorded)]


def _folder_faults(root: str, folder: str, recorded: Mapping[str, int]) -> list[tuple[str, str]]:
    """By name below an open folder: the kernel walks the way to it once, not once a file."""
    try:
        below = os.open(f"{root}{folder}/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return [(f"{folder}/{name}", _fault(None, size)) for name, size in recorded.items()]
    try:
        found = {name: _size(name, below) for name in recorded}
    finally:
        os.close(below)
    return [(f"{folder}/{name}", _fault(found[name], size)) for name, size in recorded.items() if found[name] != size]


def _size(name: str, below: int) -> int | None:
    try:
        return os.stat(name, dir_fd=below, follow_symlinks=False).st_size
    except OSError:
        return None


def _fault(found: int | None, recorded: int) -> str:
    return "is missing" if found is None else f"has {found} bytes, the image was built with {recorded}"
