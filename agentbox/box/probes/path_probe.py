"""Kind `path`: a file, folder or program is there; with `glob`, at least `min_count` of them."""

from pathlib import Path

from agentbox.box.probes.base import located
from agentbox.box.probes.executable import why_not_executable
from agentbox.core.paths import Paths
from agentbox.plan.model import Probe


def check_path(probe: Probe, paths: Paths, _seconds: float) -> str:
    """An empty file counts as missing: it is what a failed copy leaves."""
    path = located(paths, probe.path)
    if not probe.glob:
        return _why_not(path, probe)
    good = [found for found in path.glob(probe.glob) if not _why_not(found, probe)]
    if len(good) >= probe.min_count:
        return ""
    return f"{probe.path}/{probe.glob}: {len(good)} found, {probe.min_count} needed"


def _why_not(path: Path, probe: Probe) -> str:
    if probe.type == "exec":
        why = why_not_executable(path)
        return f"{probe.path} {why}" if why else ""
    if not path.exists():
        return f"{probe.path} is missing"
    if probe.type == "dir":
        return "" if path.is_dir() else f"{probe.path} is no folder"
    if not path.is_file():
        return f"{probe.path} is no file"
    return "" if path.stat().st_size else f"{probe.path} is empty"
