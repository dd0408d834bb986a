"""Messages of an agent: the lines of one read are one commit, with all that they cause. They are
hostile: each is checked and bounded before it has an effect.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

from agentbox.core.slot_errors import AdapterError, AgentEnded
from agentbox.sessions import ending, protocol
from agentbox.sessions.lines import Place, parse
from agentbox.sessions.shown import escape
from agentbox.sessions.store import Changes

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession

MAX_REQUESTS: Final = 64  # of an agent, that wait for an answer
MAX_ID: Final = 256  # bytes of the id of a request
MAX_SETTING: Final = 64 << 10  # bytes of commands, options or modes that a later client is told
_MAX_ERROR: Final = 1000  # characters of an error of an agent
_log = structlog.get_logger()
_T = TypeVar("_T")


class AgentMessages:
    """Those of one session."""

    def __init__(self, session: "LiveSession") -> None:
        self._session = session
        self._done: list[tuple[asyncio.Future[Any], Any]] = []
        self._requests: list[Mapping[str, Any]] = []

    async def take(self, lines: list[bytes], place: Place) -> None:
        """Lines, and where to read on after them. One that is no ACP ends the agent; those before
        it count."""
        session = self._session
        invalid = b""
        async with session.lock:
            changes = Changes()
            for line in filter(None, lines):
                try:
                    self._take_line(line, changes)
                except protocol.InvalidMessage as error:
                    _log.warning("no ACP", session_id=session.stored.session_id, reason=str(error))
                    invalid = line
                    break
            session.stored.place = (place.cursor, place.skip)
            await session.commit(changes)
        done, self._done = self._done, []
        requests, self._requests = self._requests, []
        for future, value in done:
            if not future.done():
                future.set_exception(value) if isinstance(value, Exception) else (
                    future.set_result(value)
                )
        for request in requests:
            session.spawn(session.answer(request), "answer")
        if invalid:
            await ending.refuse(session, invalid)

    def _take_line(self, line: bytes, changes: Changes) -> None:
        message = parse(line)
        if message is None:
            raise protocol.InvalidMessage("not a JSON object")
        method = message.get("method")
        if not isinstance(method, str):
            self._on_answer(message, changes)
            return
        self._session.record(f"< {method}")
        params = message.get("params") or {}
        protocol.check("client", method, "params", params)
        if not isinstance(params, Mapping):
            raise protocol.InvalidMessage(f"{method} params: not an object")
        if "id" in message:
            self._on_request(message, params, changes)
        elif method == "session/update":
            self._on_update(params, changes)
        else:
            session = self._session
            told = session.paths.to_client(params)
            session.environment.editors.forward(changes, session.stored, method, told)

    def _on_request(
        self, message: Mapping[str, Any], params: Mapping[str, Any], changes: Changes
    ) -> None:
        session, rpc_id = self._session, message["id"]
        key = json.dumps(rpc_id)
        if not isinstance(rpc_id, str | int | None) or len(key) > MAX_ID:
            raise protocol.InvalidMessage(f"an id is neither a number nor a text of {MAX_ID} bytes")
        if key in session.requests:
            raise protocol.InvalidMessage("an id is that of a request that waits")
        session.requests[key] = message
        changes.add(
            "INSERT OR REPLACE INTO requests VALUES (?, ?, ?)",
            session.stored.session_id,
            key,
            json.dumps(message),
        )
        if len(session.requests) > MAX_REQUESTS:
            error = {
                "code": protocol.INTERNAL_ERROR,
                "message": f"{MAX_REQUESTS} requests wait already: wait for their answers",
            }
            session.reply(changes, rpc_id, "error", error)
        elif message["method"] == "session/request_permission":
            session.permissions.ask(changes, rpc_id, params)
        else:
            self._requests.append(message)

    def _on_update(self, params: Mapping[str, Any], changes: Changes) -> None:
        session, stored = self._session, self._session.stored
        if stored.loading:  # the agent repeats what is stored
            return
        update = session.paths.to_client(params["update"])
        kind = update["sessionUpdate"]
        stored.updates += 1
        if kind == "current_mode_update":
            mode = {"currentModeId": update["currentModeId"]}
            stored.modes = bounded({**stored.modes, **mode}, stored.modes)
        elif kind == "config_option_update":
            stored.config = bounded(list(update["configOptions"]), [])
        elif kind == "available_commands_update":
            commands = [  # names of the box's own are not the agent's
                one
                for one in update["availableCommands"]
                if not str(one["name"]).startswith("agentbox:")
            ]
            update["availableCommands"] = commands
            stored.commands = bounded(commands, [])
        elif kind == "session_info_update":
            stored.title = escape(str(update.get("title") or "")[:200].encode())[:200]
        elif kind == "usage_update":
            used = update.get("used")
            stored.tokens = used if isinstance(used, int) else stored.tokens
        session.append(changes, "update", update)
        meta = {"_meta": params["_meta"]} if "_meta" in params else {}
        session.environment.editors.update(changes, stored, update, meta)

    def _on_answer(self, message: Mapping[str, Any], changes: Changes) -> None:
        session = self._session
        n = message.get("id")
        call = session.calls.get(n) if isinstance(n, int) else None
        if call is None:
            return  # of an earlier call, or of none
        session.record(f"< answer to {call.method}")
        value: Any = message.get("result")
        if "error" in message:
            value = self._error(call.method, message["error"])
        else:
            protocol.check("agent", call.method, "result", value)
        future = session.pop_call(changes, call)
        if call.method == "session/prompt" and call.turn == session.stored.turn:
            if isinstance(value, AdapterError):
                told = None if session.stored.cancelled else value
                session.finish_turn(changes, "cancelled", told)
            else:
                session.stored.stopping = value["stopReason"]
                session.spawn(ending.stop_turn(session), "stop")
        if future is not None:
            self._done.append((future, value))

    def _error(self, method: str, error: object) -> AgentEnded:
        message = error.get("message") if isinstance(error, Mapping) else error
        shown = escape(str(message)[:_MAX_ERROR].encode())
        program = self._session.program
        return AgentEnded(
            f"the agent answered {method} with an error: {shown}",
            id=self._session.stored.session_id,
            stderr="" if program is None else escape(program.stderr),
        )


def bounded(value: _T, otherwise: _T) -> _T:
    """The value, if its row can hold it: a session is written with each commit."""
    return value if len(json.dumps(value)) <= MAX_SETTING else otherwise
