"""What an editor asks of the box as an ACP agent. A request is stored before it is done, so that
each is done and answered once, even if session-host is killed.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import structlog

from agentbox.contracts.sessions import NewSession, SessionConfig
from agentbox.core.background.tasks import log_failures
from agentbox.core.slot_errors import AdapterError, ValidationError
from agentbox.sessions import protocol, turns
from agentbox.sessions.attachment import attach, replay
from agentbox.sessions.editor_connection import EditorConnection
from agentbox.sessions.editor_notes import open_session, take_now
from agentbox.sessions.editors import error_of
from agentbox.sessions.review_commands import command_of, run_command
from agentbox.sessions.store import Changes

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession
    from agentbox.sessions.manager import SessionManager

_LISTED: Final = 100  # sessions of one answer
_log = structlog.get_logger()
_Method = Callable[[EditorConnection, Mapping[str, Any], str], Awaitable[Any]]


class EditorMethods:
    """Those of all editors."""

    def __init__(self, manager: "SessionManager") -> None:
        self._manager = manager
        self._tasks: set[asyncio.Task[None]] = set()
        self._methods: Mapping[str, _Method] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    async def take(self, connection: EditorConnection, n: int, message: Mapping[str, Any]) -> None:
        """Message `n` of an editor. Raises ValidationError if one before it is missing."""
        async with connection.lock:
            stored = connection.stored
            if n <= stored.received:
                return
            if n > stored.received + 1:
                raise ValidationError(
                    f"cannot take message {n}: the last one was {stored.received}",
                    errors=[{"pointer": "/n", "detail": f"must be {stored.received + 1}"}],
                )
            changes, work = Changes(), None
            if isinstance(message.get("method"), str) and "id" in message:
                work = self._begin(connection, message, changes)
            else:  # its effect first: what is received is not sent again
                await take_now(self._manager, connection, message, changes)
            stored.received = n
            connection.save(changes)
            await self._manager.store.commit(changes)
            self._manager.editors.wake()
        if work is not None:
            self._spawn(work)

    def go_on(self, connection: EditorConnection) -> None:
        """With the requests that were under way when session-host was killed."""
        for key, row in list(connection.requests.items()):
            if "turn" not in row:
                self._spawn(self._do(connection, key, row["message"]))

    async def close(self) -> None:
        """Ends what is under way here."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work, name="editor")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(log_failures("a request of an editor"))

    def _begin(
        self, connection: EditorConnection, message: Mapping[str, Any], changes: Changes
    ) -> Any:
        """Stores what it asks for; returns the work that follows."""
        key = json.dumps(message["id"])
        if key in connection.requests:
            return None
        connection.remember(changes, key, {"message": dict(message)})
        return self._do(connection, key, message)

    async def _do(self, connection: EditorConnection, key: str, message: Mapping[str, Any]) -> None:
        method, params = message["method"], message.get("params") or {}
        try:
            protocol.check("agent", method, "params", params)
            if method == "session/prompt":
                await self._prompt(connection, params, key)
                return
            known = self._methods.get(method)
            if known is None:
                error = {"code": protocol.METHOD_NOT_FOUND, "message": f"no method {method}"}
                await self._respond(connection, key, "error", error)
                return
            await self._respond(connection, key, "result", await known(connection, params, key))
        except protocol.InvalidMessage as invalid:
            error = {"code": protocol.INVALID_PARAMS, "message": str(invalid)}
            await self._respond(connection, key, "error", error)
        except AdapterError as failed:
            await self._respond(connection, key, "error", error_of(failed))

    async def _respond(
        self, connection: EditorConnection, key: str, member: str, value: object
    ) -> None:
        async with connection.lock:
            changes = Changes()
            connection.respond(changes, key, member, value)
            await self._manager.store.commit(changes)
            self._manager.editors.wake()

    async def _initialize(
        self, connection: EditorConnection, _params: Mapping[str, Any], _key: str
    ) -> Mapping[str, Any]:
        connection.stored.initialized = True
        from agentbox import __version__

        return {
            "protocolVersion": protocol.VERSION,
            "agentInfo": {"name": "agentbox", "version": __version__},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": False, "sse": False},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "authMethods": [],
        }

    async def _authenticate(self, *_args: Any) -> Mapping[str, Any]:
        return {}

    async def _new(
        self, connection: EditorConnection, params: Mapping[str, Any], key: str
    ) -> Mapping[str, Any]:
        stored = connection.stored
        new = NewSession(name=stored.session, agent=stored.agent, cwd=params["cwd"])
        made = await self._manager.open_for_editor(
            new, request_id=f"{stored.connection_id}/{key}", principal=stored.principal
        )
        await attach(self._manager, connection, made)
        names = [str(one.get("name", "?")) for one in params.get("mcpServers") or ()]
        refused = [name for name in names if name not in made.agent.mcp]
        if refused:
            await self._refuse_servers(connection, made, refused)
        return {"sessionId": made.stored.session_id, **_settings(made)}

    async def _load(
        self, connection: EditorConnection, params: Mapping[str, Any], key: str
    ) -> Mapping[str, Any]:
        session = self._manager.find_for(params["sessionId"], connection.stored.principal)
        await replay(self._manager, connection, session, key)
        await self._manager.make_ready(session)
        return _settings(session)

    async def _resume(
        self, connection: EditorConnection, params: Mapping[str, Any], _key: str
    ) -> Mapping[str, Any]:
        session = self._manager.find_for(params["sessionId"], connection.stored.principal)
        await attach(self._manager, connection, session)
        await self._manager.make_ready(session)
        return _settings(session)

    async def _list(
        self, connection: EditorConnection, params: Mapping[str, Any], _key: str
    ) -> Mapping[str, Any]:
        wanted = params.get("cwd")
        return {
            "sessions": [
                {
                    "sessionId": one.session_id,
                    "cwd": one.cwd,
                    "title": one.title or one.name or None,
                    "updatedAt": one.updated_at,
                }
                for one in self._manager.stored_sessions()
                if one.is_open
                and one.principal == connection.stored.principal
                and wanted in (None, one.cwd)
            ][-_LISTED:]
        }

    async def _close(
        self, connection: EditorConnection, params: Mapping[str, Any], _key: str
    ) -> Mapping[str, Any]:
        session = open_session(self._manager, connection, params)
        await self._manager.close_session(
            session.stored.session_id, principal=connection.stored.principal
        )
        return {}

    async def _set_mode(
        self, connection: EditorConnection, params: Mapping[str, Any], _key: str
    ) -> Mapping[str, Any]:
        session = open_session(self._manager, connection, params)
        config = SessionConfig(mode=params["modeId"])
        await self._manager.configure(session, config)
        return {}

    async def _set_option(
        self, connection: EditorConnection, params: Mapping[str, Any], _key: str
    ) -> Mapping[str, Any]:
        session = open_session(self._manager, connection, params)
        config = SessionConfig(option=params["configId"], value=str(params["value"]))
        await self._manager.configure(session, config)
        return {"configOptions": session.stored.config}

    async def _prompt(
        self, connection: EditorConnection, params: Mapping[str, Any], key: str
    ) -> None:
        """Answered by the end of the turn."""
        session = open_session(self._manager, connection, params)
        if words := command_of(list(params["prompt"])):
            await self._command(connection, session, words, key)
            return
        await self._manager.make_ready(session)
        async with session.lock:
            changes = Changes()
            if connection.requests.get(key, {}).get("cancelled"):
                connection.respond(changes, key, "result", {"stopReason": "cancelled"})
                await session.commit(changes)
                return
            prompt = list(params["prompt"])
            turn = await turns.begin(session, changes, prompt, connection.stored.principal)
            row = {"session": session.stored.session_id, "turn": turn}
            connection.remember(changes, key, row)
            await session.commit(changes)

    async def _command(
        self, connection: EditorConnection, session: "LiveSession", words: list[str], key: str
    ) -> None:
        stored = connection.stored
        text = await run_command(self._manager, session, words, stored.principal, stored.scopes)
        update = {
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": text},
        }
        async with connection.lock:
            changes = Changes()
            self._manager.editors.send_update(
                changes, connection, session.stored.session_id, update, {}
            )
            connection.respond(changes, key, "result", {"stopReason": "end_turn"})
            await self._manager.store.commit(changes)
            self._manager.editors.wake()

    async def _refuse_servers(
        self, connection: EditorConnection, session: "LiveSession", names: list[str]
    ) -> None:
        text = (
            f"MCP servers of the editor are not started in a box: {', '.join(map(repr, names))}. "
            "Give the agent servers with [mcp.servers] in agentbox.toml."
        )
        async with session.lock:
            changes = Changes()
            session.notice(changes, text)
            await session.commit(changes)


def _settings(session: "LiveSession") -> dict[str, Any]:
    stored = session.stored
    return {
        **({"modes": stored.modes} if stored.modes else {}),
        **({"configOptions": stored.config} if stored.config else {}),
    }
