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
    *,
    key: str | None,
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
        manager.editors.send_update(changes, connection, session.stored.session_id, update, {})
        await manager.store.commit(changes)


async def replay(
    manager: "SessionManager", connection: EditorConnection, session: "LiveSession"
) -> None:
    """The transcript, as the protocol wants it for a session that is loaded."""
    since, session_id = 0, session.stored.session_id
    while items := await manager.store.items(session_id, since, _REPLAYED, whole=True):
        async with connection.lock:
            changes = Changes()
            for item in items:
                if item.dropped:
                    continue
                for update in _replayed(item.kind, item.data):
                    manager.editors.send_update(changes, connection, session_id, update, {})
            await manager.store.commit(changes)
            manager.editors.wake()
        since = items[-1].cursor


def _replayed(kind: str, data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if kind == "prompt":
        return [
            {"sessionUpdate": "user_message_chunk", "content": block} for block in data["prompt"]
        ]
    return [data] if kind == "update" else []
