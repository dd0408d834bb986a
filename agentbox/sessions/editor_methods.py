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
from agentbox.core.slot_errors import AdapterError, NotFound, ValidationError
from agentbox.sessions import protocol, turns
from agentbox.sessions.editors import EditorConnection, error_of
from agentbox.sessions.review_commands import command_of, run_command
from agentbox.sessions.store import Changes

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession
    from agentbox.sessions.manager import SessionManager

_LISTED: Final = 100  # sessions of one answer
_REPLAYED: Final = 500  # items of a transcript read at a time
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
                await self._take_now(connection, message, changes)
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

    async def _take_now(
        self, connection: EditorConnection, message: Mapping[str, Any], changes: Changes
    ) -> None:
        """A notification, or an answer. It may be taken again after session-host was killed."""
        params = message.get("params")
        if message.get("method") == "session/cancel" and isinstance(params, Mapping):
            await self._cancel(connection, params, changes)
        if "method" in message:
            return
        row = connection.forget(changes, json.dumps(message.get("id")))
        if row is not None and row.get("own") == "permission":
            result = message.get("result")
            outcome = result.get("outcome") if isinstance(result, Mapping) else None
            option = outcome.get("optionId") if isinstance(outcome, Mapping) else ""
            await self._decide(connection, row, str(option or ""))

    async def _decide(
        self, connection: EditorConnection, row: Mapping[str, Any], option: str
    ) -> None:
        try:
            await self._manager.decide_permission(
                row["session"],
                row["permission"],
                option_id=option,
                principal=connection.stored.principal,
            )
        except AdapterError as error:
            _log.info("permission not decided", reason=error.message)

    async def _cancel(
        self, connection: EditorConnection, params: Mapping[str, Any], changes: Changes
    ) -> None:
        """The turn of that session, and a prompt that has not begun one."""
        session_id = params.get("sessionId")
        for key, row in list(connection.requests.items()):
            if "turn" not in row and _prompted(row.get("message", {})) == session_id:
                connection.remember(changes, key, {**row, "cancelled": True})
        try:
            session = self._open_session(connection, params)
            await self._manager.cancel_session(
                session.stored.session_id, principal=connection.stored.principal
            )
        except AdapterError as error:
            _log.info("not cancelled", reason=error.message)

    def _open_session(
        self, connection: EditorConnection, params: Mapping[str, Any]
    ) -> "LiveSession":
        """Raises NotFound for one that this editor has not open."""
        session_id = params.get("sessionId")
        if session_id not in connection.stored.sessions:
            raise NotFound(
                f"cannot use session {session_id}: it is not open here",
                hint="load it first",
                resource="session",
                id=str(session_id),
            )
        return self._manager.find(str(session_id))

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
        await self._attach(connection, made, key=None)
        refused = [one.get("name", "?") for one in params.get("mcpServers") or ()]
        if refused:
            await self._refuse_servers(connection, made, refused)
        return {"sessionId": made.stored.session_id, **_settings(made)}

    async def _load(
        self, connection: EditorConnection, params: Mapping[str, Any], key: str
    ) -> Mapping[str, Any]:
        session = self._manager.find_for(params["sessionId"], connection.stored.principal)
        await self._replay(connection, session)
        await self._attach(connection, session, key=key)
        await self._manager.make_ready(session)
        return _settings(session)

    async def _resume(
        self, connection: EditorConnection, params: Mapping[str, Any], key: str
    ) -> Mapping[str, Any]:
        session = self._manager.find_for(params["sessionId"], connection.stored.principal)
        await self._attach(connection, session, key=key)
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
        session = self._open_session(connection, params)
        await self._manager.close_session(
            session.stored.session_id, principal=connection.stored.principal
        )
        return {}

    async def _set_mode(
        self, connection: EditorConnection, params: Mapping[str, Any], _key: str
    ) -> Mapping[str, Any]:
        session = self._open_session(connection, params)
        config = SessionConfig(mode=params["modeId"])
        await self._manager.configure(session, config)
        return {}

    async def _set_option(
        self, connection: EditorConnection, params: Mapping[str, Any], _key: str
    ) -> Mapping[str, Any]:
        session = self._open_session(connection, params)
        config = SessionConfig(option=params["configId"], value=str(params["value"]))
        await self._manager.configure(session, config)
        return {"configOptions": session.stored.config}

    async def _prompt(
        self, connection: EditorConnection, params: Mapping[str, Any], key: str
    ) -> None:
        """Answered by the end of the turn."""
        session = self._open_session(connection, params)
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

    async def _attach(
        self, connection: EditorConnection, session: "LiveSession", *, key: str | None
    ) -> None:
        """The editor gets what happens in the session from now on."""
        async with connection.lock:
            if session.stored.session_id in connection.stored.sessions:
                return
            connection.stored.sessions = [
                *connection.stored.sessions,
                session.stored.session_id,
            ]
            changes = Changes()
            connection.save(changes)
            update = {
                "sessionUpdate": "available_commands_update",
                "availableCommands": session.stored.commands,
            }
            self._manager.editors.send_update(
                changes, connection, session.stored.session_id, update, {}
            )
            await self._manager.store.commit(changes)

    async def _replay(self, connection: EditorConnection, session: "LiveSession") -> None:
        """The transcript, as the protocol wants it for a session that is loaded."""
        since, session_id = 0, session.stored.session_id
        while items := await self._manager.store.items(session_id, since, _REPLAYED, whole=True):
            async with connection.lock:
                changes = Changes()
                for item in items:
                    if item.dropped:
                        continue
                    for update in _replayed(item.kind, item.data):
                        self._manager.editors.send_update(
                            changes, connection, session_id, update, {}
                        )
                await self._manager.store.commit(changes)
                self._manager.editors.wake()
            since = items[-1].cursor

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


def _prompted(message: Mapping[str, Any]) -> object:
    """The id of the session that a request prompts, None if it prompts none."""
    params = message.get("params")
    if message.get("method") != "session/prompt" or not isinstance(params, Mapping):
        return None
    return params.get("sessionId")


def _settings(session: "LiveSession") -> dict[str, Any]:
    stored = session.stored
    return {
        **({"modes": stored.modes} if stored.modes else {}),
        **({"configOptions": stored.config} if stored.config else {}),
    }


def _replayed(kind: str, data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if kind == "prompt":
        return [
            {"sessionUpdate": "user_message_chunk", "content": block} for block in data["prompt"]
        ]
    return [data] if kind == "update" else []
