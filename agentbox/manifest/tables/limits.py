"""[limits]: default limits of agents."""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range, Unique
from agentbox.manifest.declarations.key import key
from agentbox.manifest.types import Size

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


@frozen
class LimitsTable:
    """Default limits of agents."""

    memory: Size = key(Size("2GiB"), "live", doc="Memory of one agent.")
    cpu: Annotated[float, Range(0.05, 256)] = key(
        1.0, "live", doc="CPU cores of one agent.", unit="cores"
    )
    pids: Annotated[int, Range(2, 65536)] = key(
        128, "live", doc="Processes and threads of one agent.", unit="processes"
    )
    fds: Annotated[int, Range(16, 65536)] = key(
        1024, "live", doc="Open files of one process of an agent.", unit="files"
    )
    tmp: Size = key(Size("64MiB"), "live", doc="Private temporary directory.")
    branch_disk: Size = key(Size("1GiB"), "live", doc="Review branch.")
    run_wall_seconds: Annotated[int, Range(1, 86400)] = key(
        600, "live", doc="Wall clock of oneshot and tool runs."
    )
    agent_wall_seconds: Annotated[int, Range(0, 2678400)] = key(
        0, "live", doc="Wall clock of long-lived agents, 0 = none."
    )
    stdout: Size = key(
        Size("1MiB"), "live", doc="Stored output per stream; the oldest is dropped and counted."
    )
    frame: Size = key(Size("1MiB"), "live", doc="One protocol message.")
    events_kept: Annotated[int, Range(64, 65536)] = key(
        1024, "live", doc="Stored events per session."
    )
    tool_timeout_seconds: Annotated[int, Range(1, 3600)] = key(
        30, "live", doc="One tool call; then an error."
    )
    approval_timeout_seconds: Annotated[int, Range(1, 3600)] = key(
        120, "live", doc="One approval; then denied."
    )
    egress: Size = key(Size("1GiB"), "live", doc="Bytes through the proxy in 24 hours.")
    allow_degraded: Annotated[tuple[Mechanism, ...], Unique()] = key(
        (), "live", doc="Mechanisms that may be degraded without refusing the spawn."
    )
