"""Phase B6: every program can run on this machine, and every layer holds what its record says."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
    """The image carries one record a layer: the files of each package with their sizes. The process engine has none."""
    if not context.paths.layer_files.is_dir():
        return []
    found = []
    for record in sorted(context.paths.layer_files.glob("*.json")):
        for package in json.loads(record.read_bytes())["packages"].values():
            found.extend(_package_faults(context, package))
    return found


def _package_faults(context: Context, package: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Counts and adds up first; only where that is wrong, the files are named."""
    root = str(context.paths.prefix).rstrip("/")
    sizes = {path: _size(root + path) for path in package["files"]}
    there = [size for size in sizes.values() if size is not None]
    if len(there) == package["count"] and sum(there) == package["size"]:
        return []
    return [(path, _fault(sizes[path], size)) for path, size in package["files"].items() if sizes[path] != size]


def _size(path: str) -> int | None:
    try:
        return os.lstat(path).st_size
    except OSError:
        return None


def _fault(found: int | None, recorded: int) -> str:
    return "is missing" if found is None else f"has {found} bytes, the image was built with {recorded}"
