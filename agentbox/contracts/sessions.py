"""Records of sessions, and what the API and session-host serve for them. A session is one agent
that speaks the Agent Client Protocol (ACP), in a sandbox of its own: one branch, HOME and state.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, Protocol

from agentbox.contracts.arguments import Cursor, PageSize, Position
from agentbox.contracts.orchestrator import RequestId
from agentbox.contracts.routes.operation import sent_as
from agentbox.core.records.bounds import bounded_text, number_range, schema_keywords
from agentbox.core.records.page import Page
from agentbox.core.records.wire import JsonObj, Record, record

MAX_NAME = 128  # characters
MAX_PROMPT = 1 << 20  # characters of a prompt given as text
MAX_WAIT = 86_400.0  # seconds that a call waits for the end of a turn
WORKSPACE = "/workspace"  # the branch, in each path that a client sends or gets

SessionState = Literal["starting", "idle", "busy", "suspended", "closed", "failed"]
SessionItemKind = Literal["update", "permission", "decision", "prompt", "stop", "state", "notice"]


@record
class NewSession(Record):
    """A session to open. `name` is for people and for `agentbox acp --session`; "" = the session's
    id. `agent`: a table in [agents] with `protocol = "acp"`; "" = the only one. `cwd`: absolute,
    below `/workspace`. `mcp_servers`: names of rows in [mcp.servers] that the agent gets.
    """

    name: Annotated[str, bounded_text(maximum=MAX_NAME)] = ""
    agent: str = ""
    cwd: str = WORKSPACE
    labels: Mapping[str, str] = field(default_factory=dict)
    mcp_servers: tuple[str, ...] = ()


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
    """As far as the agent reported it. Tokens of the model gateway are in the agent's budget."""

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


@record
class EditorFrame(Record):
    """To an editor. `n` counts the messages of this connection from 1. The first frame of a
    subscription has no message: `n` is where it starts, `received` the number of messages taken
    from the editor so far.
    """

    n: int
    message: JsonObj | None = None
    received: int = 0


SessionId = Annotated[str, sent_as("id"), bounded_text(minimum=1, maximum=MAX_NAME)]
PermissionId = Annotated[str, sent_as("pid"), bounded_text(pattern="^[A-Za-z0-9_.-]{1,128}$")]
PromptText = Annotated[str, bounded_text(minimum=1, maximum=MAX_PROMPT)]
OptionId = Annotated[str, bounded_text(maximum=1024)]
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


class SessionHost(Protocol):
    """What session-host serves to the API. `principal` and `scopes` are the caller's. Session ids
    are also found by name. Raises UnknownSession for one that is not there."""

    async def create_session(
        self, session: NewSession, *, request_id: str, principal: str
    ) -> Session:
        """Repeated calls return the same session. Returns when the agent has opened its session.
        Raises SessionsFull, AcpTimeout, AcpInvalid, AgentEnded, and what spawning raises."""
        ...

    async def list_sessions(self, *, limit: int, cursor: str | None) -> Page[Session]:
        """Oldest first; closed ones stay for a while."""
        ...

    async def get_session(self, session_id: str) -> Session: ...

    async def close_session(self, session_id: str, *, principal: str) -> Session:
        """Returns when the branch is sealed. Idempotent."""
        ...

    async def prompt_session(
        self, session_id: str, text: str, *, request_id: str, principal: str, wait_s: float
    ) -> PromptResult:
        """Resumes a suspended session first. Returns with the end of the turn, or after `wait_s`
        seconds; repeated calls wait for the same turn. Raises SessionBusy."""
        ...

    async def cancel_session(self, session_id: str, *, principal: str) -> Session:
        """Without a turn nothing happens."""
        ...

    async def configure_session(
        self, session_id: str, config: SessionConfig, *, principal: str
    ) -> Session: ...

    async def suspend_session(self, session_id: str, *, principal: str) -> Session:
        """Raises SessionBusy."""
        ...

    async def resume_session(self, session_id: str, *, principal: str) -> Session: ...

    async def decide_permission(
        self, session_id: str, permission_id: str, *, option_id: str, principal: str
    ) -> Session:
        """Raises NotFound for one that no longer waits, ValidationError for an unknown option."""
        ...

    def stream_session(
        self, session_id: str, *, since: int, follow: bool
    ) -> AsyncIterator[SessionItem]:
        """Items with a larger cursor than `since`, each once."""
        ...

    async def read_transcript(self, session_id: str, *, since: int, limit: int) -> Transcript: ...

    def open_editor(
        self,
        connection_id: str,
        *,
        principal: str,
        scopes: tuple[str, ...],
        since: int,
        agent: str,
        session: str,
    ) -> AsyncIterator[EditorFrame]:
        """Messages to an editor after number `since`; the first frame says where both sides are. A
        connection outlives its subscription by 60 seconds, so that the same id goes on: no message
        is lost or doubled. `agent`: the table that `session/new` starts; `session`: the name of the
        session that it opens or creates. A second subscription ends the first. Raises CursorExpired
        if messages after `since` are no longer there, PermissionDenied for another's connection.
        """
        ...

    async def send_editor(self, connection_id: str, *, n: int, message: JsonObj) -> None:
        """Message `n` of the editor, from 1; one that was taken before is ignored. Raises NotFound
        without a connection, ValidationError if one before it is missing."""
        ...


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
