"""Free space for state, cache, Nix store and the engine's data directory."""

import os
from collections.abc import Iterator
from pathlib import Path

from agentbox.host.doctor.check_context import CheckContext, existing_ancestor
from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.engines.command import run

NAME = "disk"
TITLE = "free space where a box writes"
GIB = 1 << 30
# A first build stores fetched files, unpacked layers, the archive and the engine's copy of an image
# of 150 MB compressed. Below the second number writes soon fail; a box stops agents at 64 MiB free.
BUILD, RUN = 5 * GIB, GIB // 2


def run_check(host: CheckContext) -> Iterator[CheckResult]:
    locations = {"state": (host.state.directory, RUN), "cache": (host.paths.cache, RUN)}
    if host.is_container:
        locations["nix"] = (Path("/nix"), BUILD)
        if host.daemon.state == "answers" and host.daemon.host.startswith("unix://"):
            root = run(
                ["docker", "info", "--format", "{{.DockerRootDir}}"],
                doing="query docker's data directory",
            )
            locations["engine"] = (Path(root.strip()), BUILD)
    for name, (path, required) in locations.items():
        yield _check_space(name, path, required)


def _check_space(name: str, path: Path, required: int) -> CheckResult:
    stats = os.statvfs(existing_ancestor(path))
    free, inodes = stats.f_bavail * stats.f_frsize, stats.f_favail
    message = f"{free / GIB:.1f} GiB free at {path}"
    facts = {"free": free, "inodes": inodes, "path": str(path)}
    if free < RUN or (stats.f_files and inodes < 10_000):
        advice = (
            "Free some space; `docker image prune` and `nix-collect-garbage` remove unused data."
        )
        return CheckResult(
            check=NAME,
            subject=name,
            state="bad",
            message=f"{message}, {inodes} free inodes",
            advice=advice,
            facts=facts,
        )
    if free < required:
        advice = f"Free some space: a first build needs {required / GIB:.0f} GiB."
        return CheckResult(
            check=NAME, subject=name, state="warning", message=message, advice=advice, facts=facts
        )
    return CheckResult(check=NAME, subject=name, state="good", message=message, facts=facts)
