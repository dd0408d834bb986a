"""[limits]: default limits of agents."""

from dataclasses import dataclass
from typing import Annotated, Literal

from agentbox.manifest.types import Range, Size, Unique, key

Mechanism = Literal[
    "filesystem",
    "network",
    "signals",
    "abstract_sockets",
    "pathname_sockets",
    "syscalls",
    "memory",
    "cpu",
    "processes",
    "descriptors",
    "disk",
]


@dataclass(frozen=True, kw_only=True)
class LimitsTable:
    """Limits of one agent. Only for `agent_wall_seconds` 0 means unlimited."""

    memory: Size = key(Size("2GiB"), "live")
    cpu: Annotated[float, Range(0.05, 256)] = key(1.0, "live")
    pids: Annotated[int, Range(2, 65536)] = key(128, "live")
    fds: Annotated[int, Range(16, 65536)] = key(1024, "live")
    tmp: Size = key(Size("64MiB"), "live")
    branch_disk: Size = key(Size("1GiB"), "live")
    run_wall_seconds: Annotated[int, Range(1, 86400)] = key(600, "live")
    agent_wall_seconds: Annotated[int, Range(0, 2678400)] = key(0, "live")
    stdout: Size = key(Size("1MiB"), "live")
    frame: Size = key(Size("1MiB"), "live")
    events_kept: Annotated[int, Range(64, 65536)] = key(1024, "live")
    tool_timeout_seconds: Annotated[int, Range(1, 3600)] = key(30, "live")
    approval_timeout_seconds: Annotated[int, Range(1, 3600)] = key(120, "live")
    egress: Size = key(Size("1GiB"), "live")
    allow_degraded: Annotated[tuple[Mechanism, ...], Unique()] = key((), "live")
