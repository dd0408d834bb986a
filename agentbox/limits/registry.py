"""The registry: each limit with its unit, where it is set, who holds it, what happens at it, and the bound that a test shows.

Sizes in bytes, times in seconds. The numbers that no key of the manifest sets are here too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Unit = Literal["bytes", "cores", "processes", "files", "seconds", "events", "bytes/s", "agents", "levels"]

WARN_AT: Final = 0.8  # of a cap: one warning
REARM_BELOW: Final = 0.5  # of a cap: the next crossing of WARN_AT warns again
LOOK_NEAR: Final = 0.1  # seconds between two looks at all trees while one uses more than half of a limit
LOOK_FAR: Final = 0.25
OUTPUT_RATE: Final = 32 << 20  # bytes a second drained from each stream of an agent
OUTPUT_BURST: Final = 4 << 20
FREE_FLOOR: Final = 256 << 20  # bytes free where agents write; below it all are stopped until it is known who wrote
WALK_SECONDS: Final = 1.0  # at least between two walks of one agent's folders
INODE_BYTES: Final = 1 << 10  # what a file costs beside its blocks, so that empty ones are not free


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One limit. `config_path` is the key of the manifest, "" where the number is fixed and `fixed` has it."""

    name: str
    unit: Unit
    config_path: str
    holder: str
    at_the_limit: str
    bound: str
    fixed: int | None = None


def _of_agents(name: str, unit: Unit, holder: str, at_the_limit: str, bound: str) -> Limit:
    return Limit(name=name, unit=unit, config_path=f"limits.{name}", holder=holder, at_the_limit=at_the_limit, bound=bound)  # fmt: skip


_ROWS = (
    _of_agents("memory", "bytes", "RLIMIT_DATA a process, watchdog for the tree", "the tree is ended", "0.5 s after crossing"),
    _of_agents("cpu", "cores", "kernel: CPU set, rounded up, and nice 10", "it waits", "exact in whole cores"),
    _of_agents("pids", "processes", "reaper at the fork, watchdog behind it", "fork fails, the tree is ended", "exact"),
    _of_agents("fds", "files", "kernel: RLIMIT_NOFILE, of each process", "open fails with EMFILE", "exact"),
    _of_agents("tmp", "bytes", "a walk of HOME and TMPDIR", "the tree is ended", "2 s after crossing"),
    _of_agents("branch_disk", "bytes", "RLIMIT_FSIZE a file, a walk for their sum", "the tree is ended", "2 s after crossing"),
    _of_agents("run_wall_seconds", "seconds", "reaper", "the tree is ended", "exact"),
    _of_agents("agent_wall_seconds", "seconds", "reaper", "the tree is ended", "exact"),
    _of_agents("stdout", "bytes", "agent-host, of each stream", "the oldest is dropped and counted", "exact to one segment"),
    _of_agents("frame", "bytes", "whoever reads a protocol", "the message is refused", "exact"),
    _of_agents("events_kept", "events", "agent-host", "the oldest is dropped and counted", "exact"),
    _of_agents("tool_timeout_seconds", "seconds", "whoever calls the tool", "the call is an error", "exact"),
    _of_agents("approval_timeout_seconds", "seconds", "agent-host", "denied", "exact"),
    _of_agents("egress", "bytes", "gateway, in 24 h", "the proxy refuses", "exact to one piece"),
    Limit(name="output_rate", unit="bytes/s", config_path="", fixed=OUTPUT_RATE, holder="agent-host, of each stream",
          at_the_limit="the flood waits in its own pipe", bound="exact"),
    Limit(name="free_floor", unit="bytes", config_path="", fixed=FREE_FLOOR, holder="the walk of folders",
          at_the_limit="every agent is stopped until it is known who wrote", bound="2 s"),
    Limit(name="max_agents", unit="agents", config_path="adapters.orchestrator.max_agents", holder="agent-host",
          at_the_limit="the spawn is refused", bound="exact"),
    Limit(name="max_depth", unit="levels", config_path="adapters.orchestrator.max_depth", holder="agent-host",
          at_the_limit="the spawn is refused", bound="exact"),
)  # fmt: skip

LIMITS: Final[Mapping[str, Limit]] = {row.name: row for row in _ROWS}


def config_path(limit: str) -> str:
    """The manifest's key of a limit, as `limits.memory`. Raises KeyError for a name that is none."""
    return LIMITS[limit].config_path
