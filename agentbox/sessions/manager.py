"""All sessions of this box: `SessionHost` of `contracts/sessions.py`."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final

import structlog

from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.session_host import EditorFrame
from agentbox.contracts.sessions import (
    NewSession,
    PromptResult,
    Session,
    SessionConfig,
    SessionItem,
    Transcript,
)
from agentbox.core.records.page import Page
from agentbox.core.slot_errors import SessionBusy, UnknownSession
from agentbox.sessions import configuring, ending, opening, recovery, turns
from agentbox.sessions.creation import Creation, remember
from agentbox.sessions.editor_methods import EditorMethods
from agentbox.sessions.editors import Editors
from agentbox.sessions.environment import Environment, SessionsConfig
from agentbox.sessions.live_session import LiveSession
from agentbox.sessions.record import Detail, SessionRecord
from agentbox.sessions.store import Changes, SessionStore
from agentbox.sessions.stored import StoredSession
from agentbox.sessions.upkeep import Upkeep

_CLOSE_SECONDS: Final = 5.0
_RECORD_SECONDS: Final = 0.5  # between looks for something new
_MAX_WAIT: Final = 60.0  # seconds of one call that waits
_PAGE: Final = 256
_log = structlog.get_logger()


class SessionManager:
    """`config` returns the values in force."""

    def __init__(
        self, host: AgentHost, store: SessionStore, config: Callable[[], SessionsConfig]
    ) -> None:
        self.host, self.store, self._config = host, store, config
        self.editors = Editors(store)
        self._environment = Environment(host=host, store=store, config=config, editors=self.editors)
        self._sessions: dict[str, LiveSession] = {}
        self._methods = EditorMethods(self)
        self._record = SessionRecord(store, self._transcript_detail)
        self.upkeep = Upkeep(self)
        self.creation = Creation(self, self._environment)
        self._sweeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Goes on with what is stored."""
        await self.editors.recover()
        for stored in await self.store.sessions():
            session = self._sessions[stored.session_id] = LiveSession(self._environment, stored)
            await session.recover()
        for session in self._sessions.values():
            recovery.go_on(session)
        for connection in self.editors.connections.values():
            self._methods.go_on(connection)
        self._sweeping = asyncio.create_task(self.upkeep.run(), name="sweep")

    async def close(self) -> None:
        """Agents go on without session-host."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        await self._methods.close()
        for session in self._sessions.values():
            await session.close()

    def add(self, session: LiveSession) -> None:
        """A new one."""
        self._sessions[session.stored.session_id] = session

    def remove(self, session_id: str) -> None:
        """One that is forgotten."""
        del self._sessions[session_id]

    def live_sessions(self) -> list[LiveSession]:
        """Oldest first."""
        return list(self._sessions.values())

    @property
    def config(self) -> SessionsConfig:
        """The values in force."""
        return self._config()

    def stored_sessions(self) -> Iterable[StoredSession]:
        """Oldest first."""
        return (session.stored for session in self._sessions.values())

    def find(self, session_id: str) -> LiveSession:
        """By id, or by name among those that are open. Raises UnknownSession."""
        found = self._sessions.get(session_id) or next(
            (
                one
                for one in self._sessions.values()
                if one.stored.name == session_id and one.stored.is_open
            ),
            None,
        )
        if found is None:
            raise UnknownSession(
                f"cannot find session {session_id}",
                hint="`agentbox session list` shows all",
                id=session_id,
            )
        return found

    def find_for(self, session_id: str, principal: str) -> LiveSession:
        """One of that caller, as editors know only their own. Raises UnknownSession."""
        session = self.find(session_id)
        if session.stored.principal != principal:
            raise UnknownSession(f"cannot find session {session_id}", id=session_id)
        return session

    async def create_session(
        self, session: NewSession, *, request_id: str, principal: str
    ) -> Session:
        made = await self.creation.create(session, request_id, principal)
        return made.stored.describe()

    async def open_for_editor(
        self, session: NewSession, *, request_id: str, principal: str
    ) -> LiveSession:
        """That of this name if it is open, else a new one."""
        if session.name:
            for one in self._sessions.values():
                stored = one.stored
                if (stored.name, stored.principal) == (session.name, principal) and stored.is_open:
                    await self.make_ready(one)
                    return one
        return await self.creation.create(session, request_id, principal)

    async def list_sessions(self, *, limit: int, cursor: str | None) -> Page[Session]:
        after = cursor or ""
        rows = [one for one in self.stored_sessions() if one.session_id > after][: limit + 1]
        shown = tuple(row.describe() for row in rows[:limit])
        return Page(items=shown, next_cursor=shown[-1].session_id if len(rows) > limit else None)

    async def get_session(self, session_id: str) -> Session:
        return self.find(session_id).stored.describe()

    async def close_session(self, session_id: str, *, principal: str) -> Session:
        session = self.find(session_id)
        if session.stored.state == "closed":
            return session.stored.describe()
        session.ending = "close"
        if session.stored.state == "starting" and not session.stored.sandbox_id:
            async with session.opening:  # so that it has one
                pass
        await ending.end_sandbox(session, _CLOSE_SECONDS)
        async with session.lock:
            changes = Changes()
            session.permissions.drop_all(changes)
            session.finish_turn(changes, "cancelled", None)
            session.set_state(changes, "closed", f"closed by {principal}")
            session.stored.has_sandbox = False
            await session.commit(changes)
        return session.stored.describe()

    async def prompt_session(
        self, session_id: str, text: str, *, request_id: str, principal: str, wait_s: float
    ) -> PromptResult:
        session = self.find(session_id)
        known = await self.store.once(principal, request_id)
        if known is not None:
            turn = known[1]
        else:
            await self.make_ready(session)
            async with session.lock:
                changes = Changes()
                block = {"type": "text", "text": text}
                turn = await turns.begin(session, changes, [block], principal)
                remember(changes, principal, request_id, session, turn)
                await session.commit(changes)
        return await turns.wait_for_end(session, turn, wait_s)

    async def cancel_session(self, session_id: str, *, principal: str) -> Session:
        session = self.find(session_id)
        async with session.lock:
            changes = Changes()
            await turns.cancel(session, changes)
            await session.commit(changes)
        return session.stored.describe()

    async def configure_session(
        self, session_id: str, config: SessionConfig, *, principal: str
    ) -> Session:
        session = self.find(session_id)
        await self.configure(session, config)
        return session.stored.describe()

    async def configure(self, session: LiveSession, config: SessionConfig) -> None:
        """Raises ValidationError without a setting."""
        await self.make_ready(session)
        await configuring.configure(session, config)

    async def suspend_session(self, session_id: str, *, principal: str) -> Session:
        session = self.find(session_id)
        await self.suspend(session)
        return session.stored.describe()

    async def resume_session(self, session_id: str, *, principal: str) -> Session:
        session = self.find(session_id)
        await self.make_ready(session)
        return session.stored.describe()

    async def decide_permission(
        self, session_id: str, permission_id: str, *, option_id: str, principal: str
    ) -> Session:
        session = self.find(session_id)
        async with session.lock:
            changes = Changes()
            session.permissions.decide(changes, permission_id, option_id, principal)
            await session.commit(changes)
        return session.stored.describe()

    async def stream_session(
        self, session_id: str, *, since: int, follow: bool
    ) -> AsyncIterator[SessionItem]:
        session = self.find(session_id)
        session.readers += follow
        try:
            while True:
                for item in await self.store.items(
                    session.stored.session_id, since, _PAGE, whole=True
                ):
                    since = item.cursor
                    yield item
                if since >= session.head:
                    if not follow or not session.stored.is_open:
                        return
                    await session.wait()
        finally:
            session.readers -= follow

    async def read_transcript(self, session_id: str, *, since: int, limit: int) -> Transcript:
        session = self.find(session_id)
        items = tuple(await self.store.items(session.stored.session_id, since, limit, whole=True))
        more = bool(items) and items[-1].cursor < session.stored.head
        return Transcript(items=items, next=items[-1].cursor if more else None)

    async def open_editor(
        self,
        connection_id: str,
        *,
        principal: str,
        scopes: tuple[str, ...],
        since: int,
        agent: str,
        session: str,
    ) -> AsyncIterator[EditorFrame]:
        connection = await self.editors.open(
            connection_id, principal=principal, scopes=scopes, agent=agent, session=session
        )
        async for frame in self.editors.frames(connection, since):
            yield frame

    async def send_editor(self, connection_id: str, *, n: int, message: Any) -> None:
        await self._methods.take(self.editors.find(connection_id), n, message)

    async def read_record(self, after: int, *, wait_s: float) -> tuple[LifecycleRecord, ...]:
        deadline = time.monotonic() + min(_MAX_WAIT, wait_s)
        while not (lines := await self._record.read(after)):
            if time.monotonic() >= deadline:
                break
            await asyncio.sleep(_RECORD_SECONDS)
        return lines

    def _transcript_detail(self, agent: str) -> Detail:
        known = self._config().agents.get(agent)
        return known.acp.transcript if known is not None else "digest"

    async def make_ready(self, session: LiveSession) -> None:
        """Resumes a suspended session. Raises SessionBusy for one that cannot be prompted, and what
        resuming raises."""
        stored = session.stored
        async with session.opening:
            if stored.state == "suspended":
                self.creation.check_room()
                await opening.resume(session)
        if not stored.is_open:
            raise SessionBusy(
                f"cannot use session {stored.session_id}: it is {stored.state}",
                hint="open a new one",
                id=stored.session_id,
            )

    async def suspend(self, session: LiveSession) -> None:
        """Nothing if it is. Raises SessionBusy."""
        async with session.opening:
            await ending.suspend(session)
