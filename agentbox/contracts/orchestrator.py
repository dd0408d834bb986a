"""The contract of the orchestrator slot: agent processes."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, Protocol

from agentbox.contracts import arguments
from agentbox.contracts.arguments import Cursor, Id, PageSize, Position
from agentbox.contracts.routes.operation import INTERNAL, header, sent_as, spread
from agentbox.core.records.bounds import bounded_text, number_range, schema_keywords
from agentbox.core.records.page import Page
from agentbox.core.records.wire import JsonObj, Record, record

CONTRACT_VERSION = "1.2.0"
AgentState = Literal[
    "starting", "running", "backoff", "stopping", "suspended", "exited", "failed", "lost"
]
ExitReason = Literal[
    "exit", "signal", "terminated", "timeout", "limit", "lost", "restart-intensity"
]
AgentKind = Literal["agent", "sandbox", "session"]
StreamKind = Literal["stdout", "stderr", "state", "exit"]
Signal = Literal["INT", "TERM", "HUP", "USR1", "USR2", "STOP", "CONT"]
LIMIT = arguments.PAGE_BOUNDS
MIN_LIMITS: Mapping[str, float] = {
    "memory": 1 << 20,
    "cpu": 0.05,
    "pids": 1,
    "fds": 16,
    "stdout": 4096,
}
MAX_OUTPUT = 8 << 20  # bytes per stream of a one-shot run
MAX_RUN_SECONDS = 7 * 86400.0  # seconds of a one-shot run
RunSeconds = Annotated[float, schema_keywords(exclusiveMinimum=0, maximum=MAX_RUN_SECONDS)]
MAX_USES = 1_000_000_000
MAX_RATE = 1_000_000  # uses a minute
STATE_NAME = "^([a-z0-9][a-z0-9_-]{0,63})?$"
SHUTDOWN_GRACE = 5.0  # seconds from TERM to KILL at shutdown; agent-host has 8 (plan/programs.py)


@record
class Limits(Record):
    """Limits of one agent; None = the manifest's `[limits]`. A spec may only lower them. Sizes in
    bytes. `wall_seconds` 0 means none.
    """

    memory: Annotated[int | None, number_range(MIN_LIMITS["memory"])] = None
    cpu: Annotated[float | None, number_range(MIN_LIMITS["cpu"])] = None  # cores
    pids: Annotated[int | None, number_range(MIN_LIMITS["pids"])] = None
    fds: Annotated[int | None, number_range(MIN_LIMITS["fds"])] = None
    tmp: Annotated[int | None, number_range(1)] = None
    branch_disk: Annotated[int | None, number_range(1)] = None
    wall_seconds: Annotated[float | None, number_range(0)] = None
    stdout: Annotated[int | None, number_range(MIN_LIMITS["stdout"])] = None  # stored per stream
    frame: Annotated[int | None, number_range(1)] = None
    events_kept: Annotated[int | None, number_range(1)] = None


DEFAULT = Limits()


@record
class Constraint(Record):
    """Constrains the grants of a scope of a new agent. `operation`, `pattern`: "" = any; patterns
    as in policies. The grants end after `expires_s` or after `uses` in total, with at most `rate`
    uses a minute; None = no limit. Grants enforced by the kernel (fs, exec, env, net tcp) have
    neither count nor rate. A secret has the scope env and its name as pattern; with a count or a
    rate it is not a file, and each `secret.get` counts as a use.
    """

    scope: Literal["fs", "net", "exec", "env", "tool", "llm", "agent"]
    operation: str = ""
    pattern: str = ""
    expires_s: Annotated[float | None, number_range(0, MAX_RUN_SECONDS)] = None
    uses: Annotated[int | None, number_range(0, MAX_USES)] = None
    rate: Annotated[int | None, number_range(1, MAX_RATE)] = None


@record
class AgentSpec(Record):
    """A program to run as an agent. `name` is for people. `agent` is the name of a table in
    [agents] that defines the agent; keys of that table are then omitted here. `state` is the name
    of a state shared by agents; "" means a new state, or that of the table. `cwd` "" means the
    workspace. `profile` is a built-in profile or a policy of the manifest. `workspace`: `branch`
    means that a writer gets a copy of the workspace, which is reviewed at the end; `direct` means
    the workspace itself, and needs scope admin.
    """

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
    """One generation of an agent: it grows by 1 with each restart."""

    agent_id: str
    generation: int


@record
class ExitRecord(Record):
    """How a generation ended. Exactly one of `code` and `signal` is set if known from the kernel;
    `lost` has neither.
    """

    code: int | None
    signal: str | None
    reason: ExitReason
    at: datetime


@record
class AgentInfo(Record):
    """The current state of an agent. `isolation`: mechanisms enforced by the sandbox; `denials`:
    denied actions by layer and rule, over all generations; `limits`: each cap and its observed
    `peak`, null if it is not measured: `{limit: {cap, peak, unit, config_path}}`. Only `get` fills
    the next three. `policy`: profile, grants with ids, model budget; never a token. `branch`:
    `state` (none, open, sealed or over), summary of a pending `review`. `budget`: `{tokens: {cap,
    used, reserved, left}, calls: {cap, used, left}, window_seconds, resets_at}`, empty without a
    model. `state_id`: the state whose memory and pods it uses; `session_id`: that of its events.
    `usage`: `{wall_seconds, cpu_seconds, peak_memory}` of its generations, null if not measured.
    `kind`: a sandbox has no program of its own.
    """

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
    usage: JsonObj = field(default_factory=dict)
    state_id: str = ""
    session_id: str = ""
    kind: AgentKind = "agent"

    @property
    def agent_id(self) -> str:
        """That of the handle."""
        return self.handle.agent_id

    @property
    def generation(self) -> int:
        """That of the handle."""
        return self.handle.generation


@record
class StreamItem(Record):
    """An item of an agent's stream: output, or a change of state. `data` of kind `state` and `exit`
    is JSON.
    """

    cursor: int
    ts: datetime
    generation: int
    kind: StreamKind
    data: bytes


@record
class AgentFilter(Record):
    """All fields that are set must match. `label` is `key` or `key=value`."""

    state: AgentState | None = None
    name: str | None = None
    parent_id: str | None = None
    label: str | None = None


ALL = AgentFilter()


@record
class RunResult(Record):
    """The result of a one-shot run. `truncated`: output beyond `max_output` was dropped."""

    exit: ExitRecord
    stdout: bytes
    stderr: bytes
    truncated: bool
    isolation: JsonObj


AgentId = Annotated[Id, sent_as("id")]
RequestId = Annotated[str, header("Idempotency-Key")]
Local = Annotated[bool, INTERNAL]
ById = Annotated[AgentHandle, spread(agent_id=AgentId)]
InQuery = Annotated[AgentHandle, spread(agent_id=AgentId, generation=arguments.Generation)]
Filter = Annotated[AgentFilter, spread()]


class Attachment(Protocol):
    """Stdin and stdout of an agent, for one client at a time: iterate for chunks of stdout."""

    async def send(self, data: bytes) -> None: ...
    async def close_stdin(self) -> None: ...
    async def aclose(self) -> None: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...


class Orchestrator(Protocol):
    """The slot. Clauses O1 to O15 specify each call. Capabilities: `detached`, agents outlive their
    callers and are shared by several; `limits.raise`, scope admin may raise limits; `local`, agents
    are processes of this box and end when it drains; `record`, the peer's lifecycle record is read
    through this class; `denials`, as are its denial counts; `backpressure`, output waits for an
    attached reader.
    """

    @property
    def capabilities(self) -> frozenset[str]: ...

    async def spawn(
        self,
        spec: AgentSpec,
        *,
        request_id: RequestId,
        stdin: bytes | None = None,
        attached: Local = False,
    ) -> AgentHandle:
        """`stdin` is written to the first generation as it reads, then closed, even if the caller
        disconnects. None leaves a pipe to `attach`. `attached`: the caller will `stream` the output
        as attached reader, and output waits for it from the first byte.
        """

    async def run_once(
        self,
        spec: AgentSpec,
        *,
        request_id: RequestId,
        stdin: bytes = b"",
        timeout_s: RunSeconds = 600,
        max_output: Annotated[int, number_range(0, MAX_OUTPUT)] = 1 << 20,
    ) -> RunResult: ...

    async def list(
        self, filter: Filter = ALL, *, limit: PageSize = 100, cursor: Cursor | None = None
    ) -> Page[AgentInfo]: ...

    async def get(self, agent_id: AgentId) -> AgentInfo: ...

    def stream(
        self,
        agent_id: AgentId,
        *,
        since: Position = 0,
        follow: bool = True,
        attached: Local = False,
    ) -> AsyncIterator[StreamItem]:
        """With `attached` the agent's output waits while this reader is behind, and for some
        seconds after it disconnects; without the capability `backpressure`, and for other readers,
        dropped output is reported as a `state` item.
        """

    async def signal(self, handle: ById, signal: Signal) -> None: ...

    async def terminate(
        self, handle: InQuery, *, grace_s: arguments.GraceSeconds | None = None
    ) -> ExitRecord:
        """`grace_s` None means the slot's `grace_seconds`."""

    async def revoke(
        self, agent_id: AgentId, grant_id: Annotated[str, bounded_text(minimum=1)]
    ) -> AgentInfo:
        """Permanently revokes a grant of the agent and of its descendants, from the next request
        on. A grant enforced by the kernel ends the process, and its restart policy applies.
        Idempotent. Raises NotFound.
        """

    async def attach(self, handle: InQuery) -> Attachment: ...


RECORDS: Mapping[str, type[Record]] = {kind.__name__: kind for kind in (
    Limits, Constraint, AgentSpec, AgentHandle, ExitRecord, AgentInfo, StreamItem, AgentFilter,
    RunResult,
)}  # fmt: skip
