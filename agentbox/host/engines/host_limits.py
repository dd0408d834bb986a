"""Limits of the manifest that the host cannot provide. Values are not reduced: the key is
reported.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.docker.daemon_status import LOCAL_SOCKET, daemon_pid

if TYPE_CHECKING:
    from agentbox.plan.model import Plan

_NR_OPEN = Path("/proc/sys/fs/nr_open")
_CAP_SYS_RESOURCE = 24  # linux/capability.h: may raise hard limits, up to fs.nr_open


@dataclass(frozen=True)
class HostLimits:
    """The maximum values for a box on this host."""

    cores: int
    nofile: int


def process_limits() -> HostLimits:
    """Return the limits that a process-engine box inherits."""
    return HostLimits(os.cpu_count() or 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def docker_limits(cores: int, host: str = LOCAL_SOCKET) -> HostLimits:
    """Return the limits for a container. An unknown daemon is assumed to have all that the kernel
    allows.
    """
    pid = daemon_pid(host)
    maximum = int(_NR_OPEN.read_text())
    return HostLimits(
        cores, maximum if pid is None or _can_raise_limits(pid) else min(maximum, _hard_nofile(pid))
    )


def check(plan: Plan, host: HostLimits) -> None:
    """Raises AgentboxError (exit 3) naming the key."""
    if plan.resources.nofile > host.nofile:
        raise _limit_exceeded(
            "resources.nofile",
            plan.resources.nofile,
            f"this host's hard limit is {host.nofile} open files",
        )
    if plan.resources.cpus > host.cores:
        raise _limit_exceeded(
            "resources.cpus", plan.resources.cpus, f"this host has {host.cores} cores"
        )


def _limit_exceeded(key: str, requested: float, limit: str) -> AgentboxError:
    return AgentboxError(
        f"cannot set {key} = {requested:g} for the box: {limit}",
        f"Lower {key} in the manifest; values are not reduced automatically.",
        exit_code=ExitCode.PREREQUISITE,
    )


def _can_raise_limits(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    effective = next(line.split()[1] for line in status if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> _CAP_SYS_RESOURCE & 1)


def _hard_nofile(pid: int) -> int:
    limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return int(next(line.split()[4] for line in limits if line.startswith("Max open files")))
