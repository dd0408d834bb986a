"""Records of sandboxes, and what the API serves for them. A sandbox is an agent without a program
of its own: programs are run in it, one after another or side by side, until it ends.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, Protocol

from agentbox.contracts import arguments
from agentbox.contracts.arguments import Cursor, Id, PageSize, Position
from agentbox.contracts.orchestrator import (
    MAX_OUTPUT,
    AgentState,
    Attachment,
    ExitRecord,
    Limits,
    RequestId,
    RunSeconds,
    Signal,
    StreamItem,
)
from agentbox.contracts.routes.operation import sent_as
from agentbox.core.records.bounds import bounded_text, number_range, schema_keywords
from agentbox.core.records.page import Page
from agentbox.core.records.wire import JsonObj, Record, record

TTL_SECONDS = (60, 86_400)  # bounds of the life of a sandbox, as in the manifest
MAX_NAME = 128  # characters

ExecReason = Literal["exit", "signal", "timeout", "not-started", "sandbox-over"]


@record
class NewSandbox(Record):
    """A sandbox to create. `name` is for people; profile, env, limits and labels as of an
    AgentSpec; `env` is that of each program. `ttl_s`: seconds until it ends by itself; None =
    `sandboxes.ttl_seconds`.
    """

    name: Annotated[str, bounded_text(minimum=1, maximum=MAX_NAME)]
    profile: str = ""
    env: Annotated[Mapping[str, str], schema_keywords(propertyNames={"pattern": "^[^=]+$"})] = (
        field(default_factory=dict)
    )
    limits: Limits | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    ttl_s: Annotated[float | None, number_range(*TTL_SECONDS)] = None


@record
class SessionSandbox(Record):
    """The sandbox of a session of `agent`, a table of the manifest that speaks ACP: policy, limits,
    preset and model budget are those of the table. It has no TTL, and its branch and HOME outlive
    its processes until it is ended.
    """

    agent: str
    name: str
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@record
class ExecExit(Record):
    """How a program ended. Code and signal are those of the process that was started; both are None
    where `reason` is `not-started` (`detail` says why: no such program, a limit) or `sandbox-over`
    (the sandbox ended with it).
    """

    code: int | None
    signal: str | None
    reason: ExecReason
    at: datetime
    detail: str = ""


@record
class ExecInfo(Record):
    """One program of a sandbox, numbered from 1. `exit` is None while it runs."""

    n: int
    argv: tuple[str, ...]
    cwd: str
    started_at: datetime
    pid: int | None = None
    exit: ExecExit | None = None


@record
class ExecResult(Record):
    """`exit` is None for a program that was started with `detach` and still runs. `stdout` and
    `stderr`: the first `max_output` bytes of each; `truncated`: there were more.
    """

    n: int
    exit: ExecExit | None
    stdout: bytes
    stderr: bytes
    truncated: bool


@record
class Sandbox(Record):
    """`sandbox_id` is an agent id: reviews, events and `GET /v1/agents/{id}` know it by that.
    `execs`: its programs, the oldest ended ones aside. `expires_at` is None for that of a session.
    `branch` as of an AgentInfo, filled in for a single sandbox only.
    """

    sandbox_id: str
    name: str
    profile: str
    state: AgentState
    created_at: datetime
    expires_at: datetime | None
    labels: Mapping[str, str] = field(default_factory=dict)
    execs: tuple[ExecInfo, ...] = ()
    exit: ExitRecord | None = None
    branch: JsonObj = field(default_factory=dict)


@record
class FileChunk(Record):
    """A part of a file of `size` bytes. Two of one `tag` are parts of the same content."""

    data: bytes
    size: int
    tag: str


@record
class SandboxChanges(Record):
    """What differs in a branch from its start: number of paths, and the first of them, escaped."""

    total: int
    paths: tuple[str, ...] = ()


SandboxId = Annotated[Id, sent_as("id")]
ExecNumber = Annotated[str, bounded_text(pattern="^[1-9][0-9]{0,8}$")]  # in the path
Argv = Annotated[
    tuple[str, ...],
    schema_keywords(prefixItems=[{"type": "string", "minLength": 1}], minItems=1),
]
Env = Annotated[Mapping[str, str] | None, schema_keywords(propertyNames={"pattern": "^[^=]+$"})]


class SandboxEndpoints(Protocol):
    """What the API serves for sandboxes."""

    async def create(self, sandbox: NewSandbox, *, request_id: RequestId) -> Sandbox: ...

    async def list(
        self, *, limit: PageSize = 100, cursor: Cursor | None = None
    ) -> Page[Sandbox]: ...

    async def show(self, sandbox_id: SandboxId) -> Sandbox: ...

    async def end(
        self, sandbox_id: SandboxId, *, grace_s: arguments.GraceSeconds | None = None
    ) -> Sandbox: ...

    async def exec(
        self,
        sandbox_id: SandboxId,
        argv: Argv,
        *,
        request_id: RequestId,
        cwd: str = "",
        env: Env = None,
        stdin: bytes | None = None,
        interactive: bool = False,
        timeout_s: RunSeconds = 600,
        max_output: Annotated[int, number_range(0, MAX_OUTPUT)] = 1 << 20,
        detach: bool = False,
    ) -> ExecResult:
        """`cwd` "" is the workspace. `stdin` (base64) is written as the program reads, then closed;
        with `interactive` it stays open for `attach`. `detach`: the answer does not wait for the
        end.
        """

    def stream(
        self, sandbox_id: SandboxId, n: ExecNumber, *, since: Position = 0, follow: bool = True
    ) -> AsyncIterator[StreamItem]: ...

    async def signal(self, sandbox_id: SandboxId, n: ExecNumber, signal: Signal) -> None: ...

    async def attach(self, sandbox_id: SandboxId, n: ExecNumber) -> Attachment: ...


class SandboxFileEndpoints(Protocol):
    """What the API serves for files of a sandbox. A path begins with `workspace/` (its branch) or
    `tmp/` (its TMPDIR).
    """

    async def read(self, sandbox_id: SandboxId, path: str) -> bytes: ...

    async def write(self, sandbox_id: SandboxId, path: str, body: bytes) -> None: ...

    async def remove(self, sandbox_id: SandboxId, path: str) -> None: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (NewSandbox, ExecExit, ExecInfo, ExecResult, Sandbox)
}
