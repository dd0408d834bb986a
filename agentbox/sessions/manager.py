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
from agentbox.core import clock
from agentbox.core.ids import uuid7
from agentbox.core.records.page import Page
from agentbox.core.slot_errors import (
    AdapterError,
    SessionBusy,
    SessionsFull,
    UnknownSession,
    ValidationError,
)
from agentbox.sessions import opening, turns
from agentbox.sessions.editor_methods import EditorMethods
from agentbox.sessions.editors import Editors
from agentbox.sessions.environment import Environment, SessionsConfig
from agentbox.sessions.live_session import LiveSession
from agentbox.sessions.record import Detail, SessionRecord
from agentbox.sessions.store import Changes, SessionStore
from agentbox.sessions.stored import StoredSession
from agentbox.sessions.transcript_bounds import drop_bodies

MAX_TEXT: Final = 1 << 20  # bytes of the text of a turn in its result
_CLOSE_SECONDS: Final = 5.0
_SWEEP_SECONDS: Final = 5.0
_RECORD_SECONDS: Final = 0.5  # between looks for something new
_MAX_WAIT: Final = 60.0  # seconds of one call that waits
_PAGE: Final = 256
_log = structlog.get_logger()


class SessionManager:
    """`config` returns the values in force."""

    def __init__(
        self, host: AgentHost, store: SessionStore, config: Callable[[], SessionsConfig]
    ) -> None:
        self.store, self._config = store, config
        self.editors = Editors(store)
        self._environment = Environment(host=host, store=store, config=config, editors=self.editors)
        self._sessions: dict[str, LiveSession] = {}
        self._methods = EditorMethods(self)
        self._record = SessionRecord(store, self._transcript_detail)
        self._sweeping: asyncio.Task[None] | None = None
        self._opening: dict[str, asyncio.Lock] = {}

    async def start(self) -> None:
        """Goes on with what is stored."""
        await self.editors.recover()
        for stored in await self.store.sessions():
            session = self._sessions[stored.session_id] = LiveSession(self._environment, stored)
            await session.recover()
        for session in self._sessions.values():
            self._go_on(session)
        for connection in self.editors.connections.values():
            self._methods.go_on(connection)
        self._sweeping = asyncio.create_task(self._sweep_always(), name="sweep")

    async def close(self) -> None:
        """Agents go on without session-host."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        await self._methods.close()
        for session in self._sessions.values():
            await session.close()

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
        made = await self._create(session, request_id, principal)
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
        return await self._create(session, request_id, principal)

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
        if session.stored.sandbox_id:
            await self._environment.host.end_sandbox(
                session.stored.sandbox_id, grace_s=_CLOSE_SECONDS
            )
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
                self._remember(changes, principal, request_id, session, turn)
                await session.commit(changes)
        return await self._wait(session, turn, wait_s)

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
        seconds = self._config().acp.new_seconds
        inner = session.stored.inner_id
        if config.mode:
            await session.call(
                "session/set_mode", {"sessionId": inner, "modeId": config.mode}, seconds
            )
            session.stored.modes = {**session.stored.modes, "currentModeId": config.mode}
        elif config.option:
            params = {"sessionId": inner, "configId": config.option, "value": config.value}
            told = await session.call("session/set_config_option", params, seconds)
            session.stored.config = list(told["configOptions"])
        else:
            raise ValidationError(
                "cannot configure the session: neither a mode nor an option is given",
                errors=[{"pointer": "", "detail": "mode or option must be set"}],
            )
        async with session.lock:
            await session.commit(Changes())

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
        async with self._opening.setdefault(stored.session_id, asyncio.Lock()):
            if stored.state == "suspended":
                self._check_room()
                await opening.resume(session)
        if not stored.is_open:
            raise SessionBusy(
                f"cannot use session {stored.session_id}: it is {stored.state}",
                hint="open a new one",
                id=stored.session_id,
            )

    async def _create(self, new: NewSession, request_id: str, principal: str) -> LiveSession:
        async with self._opening.setdefault(f"{principal}/{request_id}", asyncio.Lock()):
            known = await self.store.once(principal, request_id)
            if known is not None:
                return self.find(known[0])
            agent = self._agent(new.agent)
            self._check_room()
            if new.name and any(
                one.name == new.name and one.is_open for one in self.stored_sessions()
            ):
                raise ValidationError(
                    f"cannot open a session named {new.name!r}: there is one",
                    hint="prompt that one, close it, or take another name",
                    errors=[{"pointer": "/name", "detail": "is in use"}],
                )
            now = clock.to_wire(clock.now())
            stored = StoredSession(
                session_id=uuid7(),
                name=new.name,
                agent=agent,
                principal=principal,
                cwd=new.cwd,
                created_at=now,
                updated_at=now,
                labels=dict(new.labels),
                mcp_servers=list(new.mcp_servers),
            )
            session = self._sessions[stored.session_id] = LiveSession(self._environment, stored)
            changes = Changes()
            self._remember(changes, principal, request_id, session, 0)
            async with session.lock:
                await session.commit(changes)
            await opening.create(session)
        return session

    def _agent(self, name: str) -> str:
        agents = self._config().agents
        if name in agents:
            return name
        if not name and len(agents) == 1:
            return next(iter(agents))
        known = ", ".join(agents) or "none"
        detail = f"must be one of: {known}"
        raise ValidationError(
            f"cannot open a session with agent {name!r}: agents that speak ACP are {known}",
            hint='name one; [agents.NAME] protocol = "acp" makes one',
            errors=[{"pointer": "/agent", "detail": detail}],
        )

    def _check_room(self) -> None:
        running = sum(one.has_program for one in self.stored_sessions())
        cap = self._config().acp.max_sessions
        if running >= cap:
            raise SessionsFull(
                f"cannot start another session: {running} of at most {cap} run",
                hint="suspend or close one, or raise acp.max_sessions in agentbox.toml",
                observed=running,
                cap=cap,
            )

    @staticmethod
    def _remember(
        changes: Changes, principal: str, request_id: str, session: LiveSession, turn: int
    ) -> None:
        changes.add(
            "INSERT OR REPLACE INTO once VALUES (?, ?, ?, ?)",
            principal,
            request_id,
            session.stored.session_id,
            turn,
        )

    async def _wait(self, session: LiveSession, turn: int, wait_s: float) -> PromptResult:
        try:
            async with asyncio.timeout(wait_s):
                while session.ended_turn < turn:
                    await session.wait()
        except TimeoutError:
            return PromptResult(turn=turn)
        text, since = "", 0
        while items := await self.store.items(session.stored.session_id, since, _PAGE, whole=True):
            for item in items:
                since = item.cursor
                if item.turn != turn:
                    continue
                if item.kind == "stop":
                    return PromptResult(
                        turn=turn,
                        stop_reason=str(item.data["stop_reason"]),
                        text=text,
                        cursor=item.cursor,
                    )
                if item.data.get("sessionUpdate") == "agent_message_chunk":
                    text = (text + turns.said(item))[:MAX_TEXT]
        return PromptResult(turn=turn)

    def _go_on(self, session: LiveSession) -> None:
        """After session-host was killed: the agent went on."""
        stored = session.stored
        if stored.state == "starting":
            session.spawn(self._start_again(session), "start again")
        elif stored.has_program and stored.program:
            session.make_program().attach()
            session.answer_waiting_requests()
            if stored.stopping:
                session.spawn(session.stop_turn(), "stop")
            elif stored.state == "busy":
                turns.watch(session)

    async def _start_again(self, session: LiveSession) -> None:
        """It was killed while the agent started: the next prompt, or load, starts it anew."""
        stored = session.stored
        if stored.program:
            session.ending = "start"
            session.make_program().attach()
            assert session.program is not None
            await session.program.end(0)
        async with session.lock:
            changes = Changes()
            opened = bool(stored.inner_id)
            stored.loading = False
            session.set_state(
                changes, "suspended" if opened else "failed", "session-host ended while it started"
            )
            await session.commit(changes)

    async def suspend(self, session: LiveSession) -> None:
        """Nothing if it is. Raises SessionBusy."""
        stored = session.stored
        async with self._opening.setdefault(stored.session_id, asyncio.Lock()):
            if stored.state == "busy":
                raise SessionBusy(
                    f"cannot suspend session {stored.session_id}: a turn is under way",
                    hint="cancel it first",
                    id=stored.session_id,
                )
            if not stored.is_open:
                return
            program = session.program
            session.ending = "suspend" if program is not None else ""
            await self._environment.host.suspend_sandbox(stored.sandbox_id, grace_s=_CLOSE_SECONDS)
            async with asyncio.timeout(_CLOSE_SECONDS):
                while program is not None and session.program is program:
                    await session.wait()

    async def _sweep_always(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            await self.sweep()

    async def sweep(self) -> None:
        """What the bounds of sessions ask for now; it is done every few seconds."""
        await self.editors.drop_left()
        for session in [*self._sessions.values(), None]:
            try:
                await (self._close_excess() if session is None else self._sweep_one(session))
            except (AdapterError, TimeoutError) as error:
                _log.warning("session not swept", reason=str(error))

    async def _sweep_one(self, session: LiveSession) -> None:
        stored = session.stored
        await drop_bodies(session)
        if not stored.is_open:
            await session.seal()
            return
        if stored.agent not in self._config().agents:
            return
        acp = session.agent.acp
        age = time.time() - clock.from_wire(stored.updated_at).timestamp()
        if stored.state == "idle" and acp.idle_suspend_seconds and not session.has_client:
            if age > acp.idle_suspend_seconds:
                await self.suspend(session)
        elif stored.state == "suspended" and age > acp.keep_days * 86_400:
            await self.close_session(stored.session_id, principal="agentbox")

    async def _close_excess(self) -> None:
        suspended = sorted(
            (one for one in self.stored_sessions() if one.state == "suspended"),
            key=lambda one: one.updated_at,
        )
        for stored in suspended[: max(0, len(suspended) - self._config().acp.max_suspended)]:
            await self.close_session(stored.session_id, principal="agentbox")
