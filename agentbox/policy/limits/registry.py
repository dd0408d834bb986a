"""The limit registry: for each limit its unit, its key, what enforces it, the consequence, and the
tested accuracy. Sizes in bytes, times in seconds. Also the fixed values without a key.
"""

from collections.abc import Mapping
from typing import Final

from agentbox.policy.limits.limit import Limit, Unit
from agentbox.policy.limits.mcp import MCP_LIMITS
from agentbox.policy.limits.sandbox_rows import SANDBOX_ROWS

WARN_AT: Final = 0.8  # of a cap: warn once
REARM_BELOW: Final = 0.5  # of a cap: below it, warnings are enabled again
POLL_SECONDS_AT_WARNING: Final = (
    0.1  # seconds between polls of all process trees while one uses more than half of a limit
)
POLL_SECONDS: Final = 0.25
OUTPUT_RATE: Final = 32 << 20  # bytes a second drained from each stream of an agent
OUTPUT_BURST: Final = 4 << 20
WRITE_RATE: Final = (
    256 << 10
)  # bytes a second that agents of one state may write; a line of the journal is 1 KiB
FREE_FLOOR: Final = (
    256 << 20
)  # bytes free on file systems of agents; below it all agents are paused until the writer is known
FREE_RESERVE: Final = (
    64 << 20
)  # of these, bytes reserved for the box's own writes, whatever the number of agents
SCAN_SECONDS: Final = 1.0  # minimum time between two scans of an agent's directories
INODE_BYTES: Final = 1 << 10  # added per file, so that empty files count


def _agent_limit(name: str, unit: Unit, enforced_by: str, consequence: str, bound: str) -> Limit:
    return Limit(
        name=name,
        unit=unit,
        config_path=f"limits.{name}",
        enforced_by=enforced_by,
        consequence=consequence,
        bound=bound,
    )


_ROWS = (
    _agent_limit(
        "memory",
        "bytes",
        "RLIMIT_DATA per process, watchdog for the tree; a quarter more, in sockets: reaper",
        "the tree is ended; no socket is made",
        "0.5 s after crossing",
    ),
    _agent_limit(
        "cpu",
        "cores",
        "kernel: CPU set, rounded up, and nice 10",
        "it waits",
        "exact in whole cores",
    ),
    _agent_limit(
        "pids",
        "processes",
        "reaper at the fork, watchdog behind it",
        "fork fails, the tree is ended",
        "exact",
    ),
    _agent_limit(
        "fds",
        "files",
        "kernel: RLIMIT_NOFILE, of each process",
        "open fails with EMFILE",
        "exact",
    ),
    _agent_limit(
        "tmp",
        "bytes",
        "disk scan of HOME and TMPDIR",
        "the tree is ended",
        "2 s after crossing",
    ),
    _agent_limit(
        "branch_disk",
        "bytes",
        "RLIMIT_FSIZE per file, disk scan for the sum",
        "the tree is ended",
        "2 s after crossing",
    ),
    _agent_limit(
        "run_wall_seconds",
        "seconds",
        "reaper",
        "the tree is ended",
        "exact",
    ),
    _agent_limit("agent_wall_seconds", "seconds", "reaper", "the tree is ended", "exact"),
    _agent_limit(
        "stdout",
        "bytes",
        "agent-host, of each stream",
        "the oldest is dropped and counted; output waits for an attached reader",
        "exact to an eighth",
    ),
    _agent_limit(
        "frame",
        "bytes",
        "gateway, in the agent API",
        "the message is refused",
        "exact",
    ),
    _agent_limit(
        "events_kept",
        "events",
        "agent-host, of each kind",
        "the oldest is dropped and counted",
        "exact to an eighth",
    ),
    _agent_limit(
        "tool_timeout_seconds",
        "seconds",
        "gateway",
        "the call is an error",
        "exact",
    ),
    _agent_limit(
        "approval_timeout_seconds",
        "seconds",
        "agent-host",
        "denied",
        "exact",
    ),
    _agent_limit(
        "egress",
        "bytes",
        "gateway, in 24 h",
        "the proxy refuses",
        "exact to one piece",
    ),
    Limit(
        name="box_tasks",
        unit="processes",
        config_path="resources.pids",
        enforced_by="reaper at the fork, of all agents, threads too",
        consequence="fork fails, the spawn is refused; the control plane keeps its reserve",
        bound="except for calls in flight, well within the reserve",
    ),
    Limit(
        name="box_memory",
        unit="bytes",
        config_path="resources.memory",
        enforced_by="watchdog, of all agents",
        consequence="the tree that uses most is ended",
        bound="0.5 s after crossing",
    ),
    Limit(
        name="unreadable",
        unit="processes",
        config_path="",
        fixed=0,
        enforced_by="watchdog",
        consequence="the tree is ended: the memory of a program whose file its user cannot read "
        "cannot be measured",
        bound="0.5 s after its start",
    ),
    Limit(
        name="output_rate",
        unit="bytes/s",
        config_path="",
        fixed=OUTPUT_RATE,
        enforced_by="agent-host, of each stream",
        consequence="the output waits in its own pipe",
        bound="exact",
    ),
    Limit(
        name="write_rate",
        unit="bytes/s",
        config_path="",
        fixed=WRITE_RATE,
        enforced_by="API, of agents of one state",
        consequence="the write is refused with 429 and Retry-After",
        bound="16 MiB at once",
    ),
    Limit(
        name="free_floor",
        unit="bytes",
        config_path="",
        fixed=FREE_FLOOR,
        enforced_by="disk scanner",
        consequence="every agent is paused until the writer is known",
        bound="2 s",
    ),
    Limit(
        name="free_reserve",
        unit="bytes",
        config_path="",
        fixed=FREE_RESERVE,
        enforced_by="disk scanner, of all agents",
        consequence="the agent that holds most is ended, if it holds 16 MiB or more; another is "
        "refused at its spawn (in a small "
        "file system below a quarter of it)",
        bound="again for each further 16 MiB",
    ),
    Limit(
        name="max_agents",
        unit="agents",
        config_path="adapters.orchestrator.max_agents",
        enforced_by="agent-host",
        consequence="the spawn is refused",
        bound="exact",
    ),
    Limit(
        name="max_depth",
        unit="levels",
        config_path="adapters.orchestrator.max_depth",
        enforced_by="agent-host",
        consequence="the spawn is refused",
        bound="exact",
    ),
    *SANDBOX_ROWS,
    *MCP_LIMITS,
)

LIMITS: Final[Mapping[str, Limit]] = {row.name: row for row in _ROWS}


def config_path(limit: str) -> str:
    """The manifest key of a limit, as `limits.memory`. Raises KeyError for an unknown name."""
    return LIMITS[limit].config_path
