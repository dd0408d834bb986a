"""An editor gets a session: what was said in it, and what happens from now on."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentbox.sessions.editor_connection import EditorConnection
from agentbox.sessions.store import Changes

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession
    from agentbox.sessions.manager import SessionManager

_REPLAYED: Final = 500  # items of a transcript read at a time


async def attach(
    manager: "SessionManager",
    connection: EditorConnection,
    session: "LiveSession",
) -> None:
    """The editor gets what happens in the session from now on."""
    async with connection.lock:
        changes = Changes()
        _join(manager, connection, session, changes)
        await manager.store.commit(changes)


async def replay(
    manager: "SessionManager", connection: EditorConnection, session: "LiveSession", key: str
) -> None:
    """The transcript, as the protocol wants it for a session that is loaded, then what happens from
    now on. `key`: the request, which goes on where it was after session-host was killed."""
    row = connection.requests[key]
    since, session_id = int(row.get("replayed", 0)), session.stored.session_id
    is_whole = False
    while not is_whole:
        async with connection.lock, session.lock:
            changes = Changes()
            items = await manager.store.items(session_id, since, _REPLAYED, whole=True)
            is_whole = len(items) < _REPLAYED
            since = items[-1].cursor if items else since
            for item in items:
                for update in () if item.dropped else _replayed(item.kind, item.data):
                    manager.editors.send_update(changes, connection, session_id, update, {})
            connection.remember(changes, key, {**connection.requests[key], "replayed": since})
            if is_whole:
                _join(manager, connection, session, changes)
            await manager.store.commit(changes)
            manager.editors.wake()


def _join(
    manager: "SessionManager",
    connection: EditorConnection,
    session: "LiveSession",
    changes: Changes,
) -> None:
    """Nothing if the editor has it."""
    stored = connection.stored
    if session.stored.session_id in stored.sessions:
        return
    stored.sessions = [*stored.sessions, session.stored.session_id]
    connection.save(changes)
    update = {
        "sessionUpdate": "available_commands_update",
        "availableCommands": session.stored.commands,
    }
    manager.editors.send_update(changes, connection, session.stored.session_id, update, {})


def _replayed(kind: str, data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if kind == "prompt":
        return [
            {"sessionUpdate": "user_message_chunk", "content": block} for block in data["prompt"]
        ]
    return [data] if kind == "update" else []
