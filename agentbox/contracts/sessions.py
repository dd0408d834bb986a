"""Records of sessions, and what the API serves for them. A session is one agent
that speaks the Agent Client Protocol (ACP), in a sandbox of its own: one branch, HOME and state.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, Protocol

from agentbox.contracts.arguments import Cursor, PageSize, Position
from agentbox.contracts.orchestrator import RequestId
from agentbox.contracts.routes.operation import sent_as
from agentbox.contracts.usage import ModelUsage
from agentbox.core.records.bounds import bounded_text, number_range, schema_keywords
from agentbox.core.records.page import Page
from agentbox.core.records.wire import JsonObj, Record, record

MAX_NAME = 128  # characters
MAX_PROMPT = 1 << 20  # characters of a prompt given as text
MAX_OPTION = 1024  # characters of the id of an answer
PERMISSION_ID = "^[A-Za-z0-9_.-]{1,128}$"
MAX_WAIT = 86_400.0  # seconds that a call waits for the end of a turn
WORKSPACE = "/workspace"  # the branch, in each path that a client sends or gets

SessionState = Literal["starting", "idle", "busy", "suspended", "closed", "failed"]
SessionItemKind = Literal["update", "permission", "decision", "prompt", "stop", "state", "notice"]


@record
class NewSession(Record):
    """A session to open. `name` is for people and for `agentbox acp --session`; "" = the session's
    id. `agent`: a table in [agents] with `protocol = "acp"`; "" = the only one. `cwd`: absolute,
    below `/workspace`.
    """

    name: Annotated[str, bounded_text(maximum=MAX_NAME)] = ""
    agent: str = ""
    cwd: str = WORKSPACE
    labels: Mapping[str, str] = field(default_factory=dict)


@record
class PermissionOption(Record):
    """One answer that is offered; `kind` as in ACP: allow_once, allow_always, reject_once,
    reject_always."""

    option_id: str
    name: str
    kind: str


@record
class PermissionRequest(Record):
    """A question of the agent that waits for an answer: courtesy of the agent, no boundary. Title
    and options are the agent's words, escaped."""

    permission_id: str
    tool_call_id: str
    title: str
    options: tuple[PermissionOption, ...]
    asked_at: datetime


@record
class SessionUsage(Record):
    """As far as the agent reported it. What the model gateway counted is in `models`."""

    prompts: int = 0
    updates: int = 0
    tokens: int | None = None


@record
class Session(Record):
    """`sandbox_id` is an agent id: branch, review, denials and budget are those of that agent; ""
    while it starts. `inner_id`: the id that the agent itself gave. `generation`: lives of the
    agent's program, one more with each resume. `head`: cursor of the newest item of its stream.
    `turn`: number of the newest prompt, from 1. `permissions`: those that wait. `reason`: why it
    failed or was closed, escaped. `modes`, `config`, `commands`: as the agent told them in ACP.
    `models`: its calls of models, null for none. `resources` of its agent: `{wall_seconds,
    cpu_seconds, peak_memory}`, null if not measured; CPU and memory of lives that have ended.
    """

    session_id: str
    name: str
    agent: str
    state: SessionState
    principal: str
    cwd: str
    created_at: datetime
    updated_at: datetime
    sandbox_id: str = ""
    inner_id: str = ""
    title: str = ""
    generation: int = 0
    turn: int = 0
    head: int = 0
    reason: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    permissions: tuple[PermissionRequest, ...] = ()
    modes: JsonObj = field(default_factory=dict)
    config: tuple[JsonObj, ...] = ()
    commands: tuple[JsonObj, ...] = ()
    usage: SessionUsage = SessionUsage()
    models: ModelUsage | None = None
    resources: JsonObj = field(default_factory=dict)


@record
class SessionItem(Record):
    """One item of a session's stream and transcript. `data` by kind: `update` the member `update`
    of ACP's `session/update`; `prompt` `{prompt, principal}`; `stop` `{stop_reason, changed}`;
    `permission` a PermissionRequest; `decision` `{permission_id, option_id, by}`; `state`
    `{state, reason}`; `notice` `{text}`, words of the box. `digest`: SHA-256 of a body that is kept
    apart; `data` is its beginning then. `dropped`: the body is gone.
    """

    cursor: int
    ts: datetime
    turn: int
    kind: SessionItemKind
    data: JsonObj
    digest: str = ""
    dropped: bool = False


@record
class Transcript(Record):
    """A part of a transcript, oldest first. `next` None: there is no more yet."""

    items: tuple[SessionItem, ...]
    next: int | None = None


@record
class PromptResult(Record):
    """The end of a turn. `stop_reason` as in ACP. `text`: what the agent said, joined, its first
    MiB. `cursor`: that of the item `stop`. Only `turn` is set while the turn goes on.
    """

    turn: int
    stop_reason: str = ""
    text: str = ""
    cursor: int = 0


@record
class SessionConfig(Record):
    """One setting of the agent: `mode` (of ACP's `session/set_mode`), or the value of one of its
    options (`session/set_config_option`)."""

    mode: str = ""
    option: str = ""
    value: str = ""


SessionId = Annotated[str, sent_as("id"), bounded_text(minimum=1, maximum=MAX_NAME)]
PermissionId = Annotated[str, sent_as("pid"), bounded_text(pattern=PERMISSION_ID)]
PromptText = Annotated[str, bounded_text(minimum=1, maximum=MAX_PROMPT)]
OptionId = Annotated[str, bounded_text(maximum=MAX_OPTION)]
WaitSeconds = Annotated[float, number_range(0, MAX_WAIT)]
ConnectionId = Annotated[str, schema_keywords(format="uuid")]


class SessionEndpoints(Protocol):
    """What the API serves for sessions."""

    async def create(self, session: NewSession, *, request_id: RequestId) -> Session: ...

    async def list(
        self, *, limit: PageSize = 100, cursor: Cursor | None = None
    ) -> Page[Session]: ...

    async def show(self, session_id: SessionId) -> Session: ...

    async def close(self, session_id: SessionId) -> Session: ...

    async def prompt(
        self,
        session_id: SessionId,
        text: PromptText,
        *,
        request_id: RequestId,
        wait_s: WaitSeconds = 0,
    ) -> PromptResult:
        """The answer comes with the end of the turn, or after `wait_s` seconds without
        `stop_reason`: the turn goes on.
        """

    async def cancel(self, session_id: SessionId) -> Session: ...

    async def configure(self, session_id: SessionId, config: SessionConfig) -> Session: ...

    async def suspend(self, session_id: SessionId) -> Session: ...

    async def resume(self, session_id: SessionId) -> Session: ...

    async def decide(
        self, session_id: SessionId, permission_id: PermissionId, *, option_id: OptionId = ""
    ) -> Session:
        """`option_id` "" answers that the question was cancelled."""

    def stream(
        self, session_id: SessionId, *, since: Position = 0, follow: bool = True
    ) -> AsyncIterator[SessionItem]: ...

    async def transcript(
        self, session_id: SessionId, *, since: Position = 0, limit: PageSize = 100
    ) -> Transcript: ...

    async def connect(
        self,
        *,
        connection: ConnectionId | None = None,
        since: Position = 0,
        agent: str = "",
        session: str = "",
    ) -> object: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind
    for kind in (
        NewSession,
        PermissionOption,
        PermissionRequest,
        SessionUsage,
        Session,
        SessionItem,
        Transcript,
        PromptResult,
        SessionConfig,
    )
}
