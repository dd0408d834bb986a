"""The launch request for one agent, and the reports about it."""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from agentbox.core.frozen import frozen
from agentbox.policy.limits.gauge import Breach
from agentbox.sandbox.confinement import Confinement

AGENT_NICE: Final = 10  # a tenth of the CPU time of a process of the control plane
Cause = Literal["", "timeout", "limit", "launcher"]


@frozen
class Launch:
    """One process to start, or without `argv` a sandbox in which programs are started later. Sizes
    in bytes, times in seconds; 0 means no limit.

    `cwd` must resolve to a directory in or below one of `roots`. `argv[0]` without a slash is
    searched in `env["PATH"]`.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    roots: tuple[str, ...]
    memory: int = 0  # of the tree; also RLIMIT_DATA of each process
    cpu: float = 0  # cores
    nice: int = AGENT_NICE  # of each process, and of the session (sched(7), autogroups)
    pids: int = 0  # processes of the tree, threads not counted
    box_tasks: int = 0  # processes and threads of all agents together
    box_memory: int = 0  # of all agents together
    fds: int = 0
    file_size: int = 0  # of each file written
    private: str = ""  # its directory: `tmp` limits `home` and `tmp` there, `branch_disk` the rest
    tmp: int = 0
    branch_disk: int = 0
    wall_seconds: float = 0
    grace_seconds: float = 5
    confinement: Confinement | None = None  # None: confined by the box alone

    def tree_limits(self) -> dict[str, Any]:
        """The fields of `watchdog.TreeLimits`, which the launcher needs to monitor the tree. In a
        sandbox one process more waits for a program.
        """
        waiting = {} if self.argv or not self.pids else {"pids": self.pids + 1}
        return {
            name: getattr(self, name)
            for name in (
                "memory",
                "pids",
                "cpu",
                "nice",
                "private",
                "tmp",
                "branch_disk",
                "box_memory",
            )
        } | waiting

    @staticmethod
    def names_program(line: bytes) -> bool:
        """Whether the launch of that line has a program; without parsing the line."""
        return not line.startswith(b'{"argv": [],')

    def to_line(self) -> bytes:
        """One line of JSON, in the order of the fields."""
        confinement = self.confinement
        data = {
            **vars(self),
            "env": dict(self.env),
            "confinement": None if confinement is None else vars(confinement),
        }
        return json.dumps(data).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """The inverse of `to_line`."""
        data = json.loads(line)
        raw = data["confinement"]
        confinement = None if raw is None else Confinement.from_json(raw)
        return cls(
            **{
                **data,
                "argv": tuple(data["argv"]),
                "roots": tuple(data["roots"]),
                "confinement": confinement,
            }
        )


@frozen
class SyscallDenials:
    """Calls that the reaper denied: `count` of that rule and signature since the last report;
    `detail` is of the last one.
    """

    rule: str
    signature: str = ""
    count: int
    detail: str


@frozen
class ProcessEnded:
    """How the leader of a tree ended, reported once no process of the tree is left. Both None:
    unknown (`lost`).
    """

    code: int | None
    signal: int | None
    cause: Cause
    breach: Breach | None = None


@frozen
class ProgramEnded:
    """How a program of a sandbox ended. Both None: its sandbox ended with it."""

    code: int | None
    signal: int | None


@frozen
class ProcessStarted:
    """A leader after its exec. `measured` is what the leader read back from the kernel
    before it.
    """

    pid: int
    start_ticks: int
    reaper: int
    measured: Mapping[str, Any]
