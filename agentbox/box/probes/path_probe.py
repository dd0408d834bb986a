"""Kind `path`: a file, directory or program exists; with `glob`, at least `min_count` of them."""

from pathlib import Path

from agentbox.box.probes.base import resolve_path
from agentbox.box.probes.executable import executable_fault
from agentbox.core.paths import Paths
from agentbox.plan.model import Probe


def check_path(probe: Probe, paths: Paths, _seconds: float) -> str:
    """An empty file counts as missing: a failed copy leaves one."""
    path = resolve_path(paths, probe.path)
    if not probe.glob:
        return _path_fault(path, probe)
    usable = [match for match in path.glob(probe.glob) if not _path_fault(match, probe)]
    if len(usable) >= probe.min_count:
        return ""
    return f"{probe.path}/{probe.glob}: {len(usable)} found, {probe.min_count} needed"


def _path_fault(path: Path, probe: Probe) -> str:
    if probe.type == "exec":
        reason = executable_fault(path)
        return f"{probe.path} {reason}" if reason else ""
    if not path.exists():
        return f"{probe.path} is missing"
    if probe.type == "dir":
        return "" if path.is_dir() else f"{probe.path} is not a directory"
    if not path.is_file():
        return f"{probe.path} is not a file"
    return "" if path.stat().st_size else f"{probe.path} is empty"
