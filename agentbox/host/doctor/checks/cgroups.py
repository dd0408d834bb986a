"""Control groups: the box's own limits are the engine's; a delegated group of version 2 is not needed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Row
from agentbox.host.engines.command import run

NAME = "cgroups"
TITLE = "control groups, which hold the box's own limits"
_UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")
_OWN = Path("/proc/self/cgroup")
# Field of `docker info` -> the key of the manifest that it holds; CIS Docker 1.6.
_HELD: Final = {
    "MemoryLimit": ("resources.memory", "CIS 5.11"),
    "CpuCfsQuota": ("resources.cpus", "CIS 5.12"),
    "PidsLimit": ("resources.pids", "CIS 5.29"),
}


def look(host: Host) -> Iterator[Row]:
    yield _version()
    if host.contained and host.daemon.state == "answers":
        info = json.loads(run(["docker", "info", "--format", "{{json .}}"], doing="ask docker what it can hold"))
        for name, (key, control) in _HELD.items():
            fine = bool(info.get(name))
            yield Row(
                check=NAME, subject=key, state="good" if fine else "bad", controls=(control,),
                said=f"the engine can hold {key}" if fine else f"the engine cannot hold {key} on this host",
                advice="" if fine else "Boot with that controller (`cgroup_enable=…`); `docker info` warns of it too.",
            )  # fmt: skip


def _version() -> Row:
    if not _UNIFIED.exists():
        return Row(check=NAME, subject="version", state="note", said="version 1 (or both): limits of agents are held by kernel limits, reaper and watchdog")  # fmt: skip
    own = next(
        line.rpartition(":")[2] for line in _OWN.read_text(encoding="utf-8").splitlines() if line.startswith("0::")
    )
    folder = _UNIFIED.parent / own.strip().lstrip("/")
    handed = _handed_on(folder)
    said = f"version 2, {'controllers handed on here: ' + handed if handed else 'no controller handed on to this user'}"
    return Row(check=NAME, subject="version", state="good", said=f"{said}; a handed-on group is not needed")


def _handed_on(folder: Path) -> str:
    subtree = folder / "cgroup.subtree_control"
    return " ".join(subtree.read_text(encoding="ascii").split()) if subtree.exists() else ""
