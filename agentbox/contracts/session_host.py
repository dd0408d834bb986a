"""What session-host serves to the API."""

from collections.abc import AsyncIterator
from typing import Protocol

from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.contracts.sessions import (
    NewSession,
    PromptResult,
    Session,
    SessionConfig,
    SessionItem,
    Transcript,
)
from agentbox.core.records.page import Page
from agentbox.core.records.wire import JsonObj, Record, record

CONTRACT_VERSION = "1.0.0"


@record
class EditorFrame(Record):
    """To an editor. `n` counts the messages of this connection from 1. The first frame of a
    subscription has no message: `n` is where it starts, `received` the number of messages taken
    from the editor so far.
    """

    n: int
    message: JsonObj | None = None
    received: int = 0


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

    async def read_record(self, after: int, *, wait_s: float = 0) -> tuple[LifecycleRecord, ...]:
        """Events of all sessions after `after`, which acknowledges all up to it; waits for the
        first."""
        ...

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
