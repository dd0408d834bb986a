"""Cgroups: the engine enforces the box's limits; a delegated version 2 cgroup is not needed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.engines.command import run

NAME = "cgroups"
TITLE = "cgroups, which enforce the limits of the box"
_UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")
_SELF_CGROUP = Path("/proc/self/cgroup")
# Field of `docker info` -> manifest key that it enforces, and CIS Docker 1.6 control.
_ENGINE_LIMITS: Final = {
    "MemoryLimit": ("resources.memory", "CIS 5.11"),
    "CpuCfsQuota": ("resources.cpus", "CIS 5.12"),
    "PidsLimit": ("resources.pids", "CIS 5.29"),
}


def run_check(host: CheckContext) -> Iterator[CheckResult]:
    yield _check_version()
    if host.is_container and host.daemon.state == "answers":
        info = json.loads(
            run(["docker", "info", "--format", "{{json .}}"], doing="query docker's limit support")
        )
        for name, (key, control) in _ENGINE_LIMITS.items():
            supported = bool(info.get(name))
            yield CheckResult(
                check=NAME,
                subject=key,
                state="good" if supported else "bad",
                controls=(control,),
                message=f"the engine can enforce {key}"
                if supported
                else f"the engine cannot enforce {key} on this host",
                advice=""
                if supported
                else "Boot with that controller (`cgroup_enable=…`); `docker info` also warns.",
            )


def _check_version() -> CheckResult:
    if not _UNIFIED.exists():
        return CheckResult(
            check=NAME,
            subject="version",
            state="note",
            message=(
                "version 1 (or hybrid): agent limits are enforced by rlimits, reaper and monitor"
            ),
        )
    group = next(
        line.rpartition(":")[2]
        for line in _SELF_CGROUP.read_text(encoding="utf-8").splitlines()
        if line.startswith("0::")
    )
    directory = _UNIFIED.parent / group.strip().lstrip("/")
    delegated = _delegated_controllers(directory)
    controllers = f"delegated controllers: {delegated}"
    message = f"version 2, {controllers if delegated else 'no controller delegated to this user'}"
    return CheckResult(
        check=NAME,
        subject="version",
        state="good",
        message=f"{message}; delegation is not needed",
    )


def _delegated_controllers(directory: Path) -> str:
    subtree = directory / "cgroup.subtree_control"
    return " ".join(subtree.read_text(encoding="ascii").split()) if subtree.exists() else ""
