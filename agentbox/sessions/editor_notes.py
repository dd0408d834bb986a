"""What editors tell and do not ask: cancellations, and answers to questions of the box."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import structlog

from agentbox.core.slot_errors import AdapterError, NotFound
from agentbox.sessions.box_approvals import decide
from agentbox.sessions.editor_connection import EditorConnection
from agentbox.sessions.store import Changes

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession
    from agentbox.sessions.manager import SessionManager

_log = structlog.get_logger()


async def take_now(
    manager: "SessionManager",
    connection: EditorConnection,
    message: Mapping[str, Any],
    changes: Changes,
) -> None:
    """A notification, or an answer. It may be taken again after session-host was killed."""
    params = message.get("params")
    if message.get("method") == "session/cancel" and isinstance(params, Mapping):
        await _cancel(manager, connection, params, changes)
    if "method" in message:
        return
    row = connection.forget(changes, json.dumps(message.get("id")))
    if row is None:
        return
    result = message.get("result")
    outcome = result.get("outcome") if isinstance(result, Mapping) else None
    option = str(outcome.get("optionId") or "") if isinstance(outcome, Mapping) else ""
    if row.get("own") == "approval":
        await decide(manager, connection, row, option)
    elif row.get("own") == "permission":
        await _decide(manager, connection, row, option)


async def _decide(
    manager: "SessionManager", connection: EditorConnection, row: Mapping[str, Any], option: str
) -> None:
    try:
        await manager.decide_permission(
            row["session"],
            row["permission"],
            option_id=option,
            principal=connection.stored.principal,
        )
    except AdapterError as error:
        _log.info("permission not decided", reason=error.message)


async def _cancel(
    manager: "SessionManager",
    connection: EditorConnection,
    params: Mapping[str, Any],
    changes: Changes,
) -> None:
    """The turn of that session, and a prompt that has not begun one."""
    session_id = params.get("sessionId")
    for key, row in list(connection.requests.items()):
        if "turn" not in row and _prompted(row.get("message", {})) == session_id:
            connection.remember(changes, key, {**row, "cancelled": True})
    try:
        session = open_session(manager, connection, params)
        await manager.cancel_session(
            session.stored.session_id, principal=connection.stored.principal
        )
    except AdapterError as error:
        _log.info("not cancelled", reason=error.message)


def open_session(
    manager: "SessionManager", connection: EditorConnection, params: Mapping[str, Any]
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
    return manager.find(str(session_id))


def _prompted(message: Mapping[str, Any]) -> object:
    """The id of the session that a request prompts, None if it prompts none."""
    params = message.get("params")
    if message.get("method") != "session/prompt" or not isinstance(params, Mapping):
        return None
    return params.get("sessionId")
