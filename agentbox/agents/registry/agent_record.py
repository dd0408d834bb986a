"""One agent as agent-host knows it, from its first request to its last exit."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from agentbox.contracts.orchestrator import (
    AgentHandle,
    AgentInfo,
    AgentKind,
    AgentSpec,
    AgentState,
    ExitRecord,
    Limits,
)
from agentbox.core import clock
from agentbox.core.ids import new_trace_id
from agentbox.core.records.wire import to_json
from agentbox.core.slot_errors import InvalidTransition, invalid_transition
from agentbox.policy.limits.registry import LIMITS
from agentbox.policy.rights.grant_set import GrantSet
from agentbox.sandbox.monitor.limit_readings import CPU_SECONDS

FINAL_STATES: frozenset[AgentState] = frozenset({"exited", "failed", "lost"})


@dataclass(kw_only=True)
class AgentRecord:
    """Mutable: only the agent's runner writes it. All of it but `exit_pending` is stored in
    agents.db."""

    agent_id: str
    spec: AgentSpec
    limits: Limits  # effective: every field set
    principal: str
    request_id: str
    program: str = ""  # of this box, whose connection may use it; "": none
    depth: int = 0
    once: bool = False  # started by run_once
    kind: AgentKind = "agent"
    branch_of: str | None = None  # agent whose branch is its workspace; "": an empty folder
    state_id: str = ""  # whose memory and pods it uses; default: its own id
    session_id: str = ""  # the task it runs for, else the root of its family; default: its own id
    trace_id: str = field(default_factory=new_trace_id)
    grant_set: GrantSet = field(default_factory=GrantSet)
    generation: int = 1
    state: AgentState = "starting"
    over: bool = False  # no generation will follow
    pid: int | None = None
    start_ticks: int = 0
    boot_id: str = ""
    started_at: datetime | None = None
    restarts: list[float] = field(default_factory=list)  # Unix seconds
    restart_count: int = 0
    exit: ExitRecord | None = None
    exit_pending: bool = False  # hidden until the exit is in the stream
    isolation: Mapping[str, Any] = field(default_factory=dict)
    denials: dict[str, dict[str, int]] = field(default_factory=dict)  # layer -> rule -> count
    quiet: dict[str, dict[str, int]] = field(
        default_factory=dict
    )  # the benign ones of these, which cause no events
    peaks: dict[str, float] = field(
        default_factory=dict
    )  # maximum seen of each limit, over all generations
    stop_requested: bool = False
    delivered: int = 0  # cursor up to which an attachment has read
    created: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.state_id = self.state_id or self.agent_id
        self.session_id = self.session_id or self.agent_id

    @property
    def handle(self) -> AgentHandle:
        return AgentHandle(agent_id=self.agent_id, generation=self.generation)

    @cached_property
    def spec_size(self) -> int:
        """Characters of the spec, which never changes."""
        return len(to_json(self.spec, ensure_ascii=True))

    def info(self, *, with_policy: bool = False) -> AgentInfo:
        """What callers see; `with_policy` adds its grants."""
        return AgentInfo(
            handle=self.handle,
            spec=self.spec,
            state=self.state,
            pid=self.pid,
            started_at=self.started_at,
            state_id=self.state_id,
            session_id=self.session_id,
            kind=self.kind,
            restarts=self.restart_count,
            exit=None if self.exit_pending else self.exit,
            isolation=self.isolation,
            denials={layer: dict(rules) for layer, rules in self.denials.items()},
            limits=self.limit_usage(),
            usage=self.run_usage(),
            policy={"profile": self.spec.profile, **self.grant_set.describe(time.time())}
            if with_policy
            else {},
        )

    @property
    def wall_name(self) -> str:
        """The limit that bounds its run time."""
        return "run_wall_seconds" if self.once else "agent_wall_seconds"

    def limit_usage(self) -> dict[str, Any]:
        """`{limit: {cap, peak, unit, config_path}}`; `peak` is None if it was not measured."""
        usage: dict[str, Any] = {}
        for limit in fields(Limits):
            row = LIMITS[self.wall_name if limit.name == "wall_seconds" else limit.name]
            cap, peak = getattr(self.limits, limit.name), self.peaks.get(row.name)
            usage[row.name] = {
                "cap": cap,
                "peak": peak,
                "unit": row.unit,
                "config_path": row.config_path,
            }
        return usage

    def run_usage(self) -> dict[str, Any]:
        """`{wall_seconds, cpu_seconds, peak_memory}`: of the last generation, of all ended
        ones, and the maximum in bytes; each None if it was not measured."""
        ended = None if self.exit is None or self.exit_pending else self.exit.at
        wall = None
        if ended is not None and self.started_at is not None:
            wall = max((ended - self.started_at).total_seconds(), 0.0)
        return {
            "wall_seconds": wall,
            "cpu_seconds": self.peaks.get(CPU_SECONDS),
            "peak_memory": self.peaks.get("memory"),
        }

    def to_row(self) -> dict[str, Any]:
        """Plain data for agents.db."""
        plain = (
            *(
                "agent_id",
                "state_id",
                "session_id",
                "trace_id",
                "principal",
                "request_id",
                "program",
                "depth",
                "once",
                "kind",
                "branch_of",
                "generation",
                "state",
                "over",
                "pid",
            ),
            *(
                "start_ticks",
                "boot_id",
                "restarts",
                "restart_count",
                "stop_requested",
                "delivered",
                "created",
            ),
        )
        return {name: getattr(self, name) for name in plain} | {
            "spec": self.spec.to_wire(),
            "limits": self.limits.to_wire(),
            "holding": self.grant_set.to_row(),
            "started_at": None if self.started_at is None else clock.to_wire(self.started_at),
            "exit": None if self.exit is None else self.exit.to_wire(),
            "isolation": dict(self.isolation),
            "denials": {layer: dict(rules) for layer, rules in self.denials.items()},
            "quiet": {layer: dict(rules) for layer, rules in self.quiet.items()},
            "peaks": dict(self.peaks),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "AgentRecord":
        """The inverse of `to_row`."""
        row = dict(row)
        started, ended, grants = row["started_at"], row["exit"], row.pop("holding")
        return cls(
            **{
                **row,
                "spec": AgentSpec.from_wire({"agent": grants["agent"], **row["spec"]}),
                "limits": Limits.from_wire(row["limits"]),
                "grant_set": replace(GrantSet.from_row(grants), token_sha256=""),
                "started_at": None if started is None else clock.from_wire(started),
                "exit": None if ended is None else ExitRecord.from_wire(ended),
            }
        )


def state_conflict(entry: AgentRecord, target: str, reason: str) -> InvalidTransition:
    """The error of a call that the state of the agent does not allow."""
    return invalid_transition(
        f"agent {entry.agent_id} cannot be {target}: {reason}",
        entry.agent_id,
        from_state=entry.state,
        to_state=target,
    )
