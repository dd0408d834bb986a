"""The contract of the orchestrator slot: agent processes."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, Protocol

from agentbox.adapters.runtime.adapter import Page
from agentbox.core.records.bounds import bounded_text, number_range, schema_keywords
from agentbox.core.records.wire import JsonObj, Record, record

CONTRACT_VERSION = "1.2.0"
AgentState = Literal["starting", "running", "backoff", "stopping", "exited", "failed", "lost"]
ExitReason = Literal[
    "exit", "signal", "terminated", "timeout", "limit", "lost", "restart-intensity"
]
StreamKind = Literal["stdout", "stderr", "state", "exit"]
Signal = Literal["INT", "TERM", "HUP", "USR1", "USR2", "STOP", "CONT"]
LIMIT = (1, 500)
MIN_LIMITS: Mapping[str, float] = {
    "memory": 1 << 20,
    "cpu": 0.05,
    "pids": 1,
    "fds": 16,
    "stdout": 4096,
}
MAX_OUTPUT = 8 << 20  # bytes a stream, of a one-shot run
MAX_RUN_SECONDS = 7 * 86400.0  # seconds, of a one-shot run
MAX_USES = 1_000_000_000
MAX_RATE = 1_000_000  # uses a minute
STATE_NAME = "^([a-z0-9][a-z0-9_-]{0,63})?$"
SHUTDOWN_GRACE = 5.0  # seconds at most from TERM to KILL when the box goes down: agent-host has 8 (plan/programs.py)


@record
class Limits(Record):
    """What one agent may use; None = the manifest's `[limits]`. A spec may only lower them. Sizes in bytes.

    `wall_seconds` 0 means none.
    """

    memory: Annotated[int | None, number_range(MIN_LIMITS["memory"])] = None
    cpu: Annotated[float | None, number_range(MIN_LIMITS["cpu"])] = None  # cores
    pids: Annotated[int | None, number_range(MIN_LIMITS["pids"])] = None
    fds: Annotated[int | None, number_range(MIN_LIMITS["fds"])] = None
    tmp: Annotated[int | None, number_range(1)] = None
    branch_disk: Annotated[int | None, number_range(1)] = None
    wall_seconds: Annotated[float | None, number_range(0)] = None
    stdout: Annotated[int | None, number_range(MIN_LIMITS["stdout"])] = None  # kept a stream
    frame: Annotated[int | None, number_range(1)] = None
    events_kept: Annotated[int | None, number_range(1)] = None


DEFAULT = Limits()


@record
class Constraint(Record):
    """A bound on the grants of a scope that a new agent holds. `operation`, `pattern`: "" = any; a pattern is as the policy
    has it. It ends them after `expires_s`, after `uses` in all, and lets `rate` uses a minute pass; None = no bound. What
    the kernel holds (fs, exec, env, net tcp) takes no count and no rate. A secret has the scope env and its name for a pattern;
    with a count or a rate it is no file, and each `secret.get` takes one use."""

    scope: Literal["fs", "net", "exec", "env", "tool", "llm", "agent"]
    operation: str = ""
    pattern: str = ""
    expires_s: Annotated[float | None, number_range(0, MAX_RUN_SECONDS)] = None
    uses: Annotated[int | None, number_range(0, MAX_USES)] = None
    rate: Annotated[int | None, number_range(1, MAX_RATE)] = None


@record
class AgentSpec(Record):
    """A program to run as an agent. `name` is for people. `agent` names a table of the manifest's [agents], and starts that
    agent: what its table says is then left out here. `state` names the state that it shares with others of that name; "" means
    a state of its own, or what the table says. `cwd` "" means the workspace. `profile` is a built-in profile or a policy of the manifest. `workspace`: `branch`
    means that who may write the workspace writes a copy of it, which is reviewed at the end; `direct` means the workspace
    itself, and needs scope admin."""

    name: Annotated[str, bounded_text(minimum=1)]
    argv: Annotated[
        tuple[str, ...], schema_keywords(prefixItems=[{"type": "string", "minLength": 1}])
    ] = ()
    profile: str = ""
    env: Annotated[Mapping[str, str], schema_keywords(propertyNames={"pattern": "^[^=]+$"})] = (
        field(default_factory=dict)
    )
    cwd: str = ""
    limits: Limits = DEFAULT
    stdin: Literal["null", "pipe"] = "null"
    restart: Literal["never", "on-failure", "always"] = "never"
    workspace: Literal["branch", "direct"] = "branch"
    parent_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    agent: str = ""
    state: Annotated[str, bounded_text(pattern=STATE_NAME)] = ""


@record
class AgentHandle(Record):
    """An agent and one life of it: the generation grows by 1 with each restart."""

    agent_id: str
    generation: int


@record
class ExitRecord(Record):
    """How a life ended. Exactly one of `code` and `signal` is set where the kernel told us; `lost` has neither."""

    code: int | None
    signal: str | None
    reason: ExitReason
    at: datetime


@record
class AgentInfo(Record):
    """An agent as it is now. `isolation` says what the sandbox enforced; `denials` how often a process of ours refused it
    something, by layer and rule, over all its lives; `limits` each cap and the most that was seen of it, `peak`, null where
    nobody looks: `{limit: {cap, peak, unit, config_path}}`. Of a single agent (`get`) `policy` says what it
    holds: the profile, each grant with its id, the model budget; never a token; `branch` where its files are: `state` (none,
    open, sealed or over) and the summary of the `review` that waits; `budget` what it has used of a model and what is left:
    `{tokens: {cap, used, reserved, left}, calls: {cap, used, left}, window_seconds, resets_at}`, empty without a model. In a
    list all three are empty. `state_id`: whose memory and pods it uses; `session_id`: what its events have (docs/contracts/events.md)."""

    handle: AgentHandle
    spec: AgentSpec
    state: AgentState
    pid: int | None
    started_at: datetime | None
    restarts: int
    exit: ExitRecord | None
    isolation: JsonObj
    denials: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    limits: JsonObj = field(default_factory=dict)
    policy: JsonObj = field(default_factory=dict)
    branch: JsonObj = field(default_factory=dict)
    budget: JsonObj = field(default_factory=dict)
    state_id: str = ""
    session_id: str = ""


@record
class StreamItem(Record):
    """One piece of an agent's output or life. `data` of kind `state` and `exit` is JSON."""

    cursor: int
    ts: datetime
    generation: int
    kind: StreamKind
    data: bytes


@record
class AgentFilter(Record):
    """All that is set must match. `label` is `key` or `key=value`."""

    state: AgentState | None = None
    name: str | None = None
    parent_id: str | None = None
    label: str | None = None


ALL = AgentFilter()


@record
class RunResult(Record):
    """What a one-shot run gave. `truncated`: output beyond `max_output` was cut."""

    exit: ExitRecord
    stdout: bytes
    stderr: bytes
    truncated: bool
    isolation: JsonObj


class Attachment(Protocol):
    """The agent's standard input and output, one holder at a time: iterate it for chunks of stdout."""

    async def send(self, data: bytes) -> None: ...

    async def close_stdin(self) -> None: ...

    async def aclose(self) -> None: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class Orchestrator(Protocol):
    """The slot. Clauses O1 to O15 say what each call promises.

    Capabilities: `detached`, agents outlive their callers, and several callers share them; `limits.raise`, who holds scope
    admin may raise limits; `local`, they are processes of this box, whose drain ends them; `record`, the peer's own record of what became of agents is read through this class;
    `denials`, so are its counts of what agents were refused; `backpressure`, it holds output for an attached reader.
    """

    @property
    def capabilities(self) -> frozenset[str]: ...

    async def spawn(
        self,
        spec: AgentSpec,
        *,
        request_id: str,
        stdin: bytes | None = None,
        attached: bool = False,
    ) -> AgentHandle:
        """`stdin` is given to the first life as it reads, then closed, whatever becomes of the caller. None leaves a pipe
        to `attach`. `attached`: who asks will `stream` its output as attached, and output waits for that reader from the
        first byte."""
        ...

    async def list(
        self, flt: AgentFilter = ALL, *, limit: int = 100, cursor: str | None = None
    ) -> Page[AgentInfo]: ...

    async def get(self, agent_id: str) -> AgentInfo: ...

    async def signal(self, handle: AgentHandle, sig: Signal) -> None: ...

    async def revoke(self, agent_id: str, grant_id: str) -> AgentInfo:
        """Takes a grant back, from all that descends from the agent too, for good: the next request is refused. What the
        kernel holds ends the process, whose restart policy then applies. Idempotent. Raises NotFound."""
        ...

    async def terminate(self, handle: AgentHandle, *, grace_s: float | None = None) -> ExitRecord:
        """`grace_s` None means the slot's `grace_seconds`."""
        ...

    def stream(
        self, agent_id: str, *, since: int = 0, follow: bool = True, attached: bool = False
    ) -> AsyncIterator[StreamItem]:
        """With `attached` the agent's output waits while this reader is behind, and some seconds after it left; without the
        capability `backpressure`, and for every other reader, what was dropped is a `state` item."""
        ...

    async def attach(self, handle: AgentHandle) -> Attachment: ...

    async def run_once(
        self,
        spec: AgentSpec,
        *,
        request_id: str,
        stdin: bytes = b"",
        timeout_s: float = 600,
        max_output: int = 1 << 20,
    ) -> RunResult: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind
    for kind in (
        Limits,
        Constraint,
        AgentSpec,
        AgentHandle,
        ExitRecord,
        AgentInfo,
        StreamItem,
        AgentFilter,
        RunResult,
    )
}
