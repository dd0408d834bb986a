"""New sessions: of which agent, and whether there is room."""

import asyncio
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from agentbox.contracts.sessions import NewSession
from agentbox.core import clock
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import AgentEnded, SessionsFull, ValidationError
from agentbox.sessions import opening
from agentbox.sessions.environment import Environment
from agentbox.sessions.live_session import LiveSession
from agentbox.sessions.store import Changes
from agentbox.sessions.stored import StoredSession

if TYPE_CHECKING:
    from agentbox.sessions.manager import SessionManager
MAX_REPEATED: Final = 1024  # turns of a session whose calls are known when they are repeated


class Creation:
    """Of all sessions."""

    def __init__(self, manager: "SessionManager", environment: Environment) -> None:
        self._manager, self._environment = manager, environment
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def create(self, new: NewSession, request_id: str, principal: str) -> LiveSession:
        """A repeated call returns the same one. Raises ValidationError, SessionsFull, and what
        opening one raises."""
        async with self._locks.setdefault(f"{principal}/{request_id}", asyncio.Lock()):
            known = await self._environment.store.once(principal, request_id)
            if known is not None:
                return await self._known(known[0])
            agent = self._agent(new.agent)
            self.check_room()
            if new.name and any(
                one.name == new.name and one.is_open for one in self._manager.stored_sessions()
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
            )
            session = LiveSession(self._environment, stored)
            self._manager.add(session)
            changes = Changes()
            remember(changes, principal, request_id, session, 0)
            async with session.lock:
                await session.commit(changes)
            async with session.opening:
                await opening.create(session)
        return session

    async def _known(self, session_id: str) -> LiveSession:
        """That of an earlier call, which may have been cut off. Raises AgentEnded if it never
        opened."""
        session = self._manager.find(session_id)
        async with session.opening:
            stored = session.stored
        if stored.state == "failed" and not stored.inner_id:
            raise AgentEnded(
                f"cannot open session {session_id}: {stored.reason}",
                hint="open a new one",
                id=session_id,
                stderr="",
            )
        return session

    def _agent(self, name: str) -> str:
        agents = self._environment.config().agents
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

    def check_room(self) -> None:
        """Raises SessionsFull."""
        running = sum(one.has_program for one in self._manager.stored_sessions())
        cap = self._environment.config().acp.max_sessions
        if running >= cap:
            raise SessionsFull(
                f"cannot start another session: {running} of at most {cap} run",
                hint="suspend or close one, or raise acp.max_sessions in agentbox.toml",
                observed=running,
                cap=cap,
            )


def remember(
    changes: Changes, principal: str, request_id: str, session: LiveSession, turn: int
) -> None:
    """The call that made the session, or the turn, is not done twice."""
    changes.add(
        "INSERT OR REPLACE INTO once VALUES (?, ?, ?, ?)",
        principal,
        request_id,
        session.stored.session_id,
        turn,
    )
    changes.add(
        "DELETE FROM once WHERE session_id = ? AND turn BETWEEN 1 AND ?",
        session.stored.session_id,
        turn - MAX_REPEATED,
    )
