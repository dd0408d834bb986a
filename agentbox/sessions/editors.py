"""Connections of editors, and what they are told. A connection outlives the socket of its editor by
60 seconds; its messages are numbered in both directions, so that none is lost or doubled.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

from agentbox.contracts.session_host import EditorFrame
from agentbox.core.slot_errors import (
    AdapterError,
    CursorExpired,
    NotFound,
    PermissionDenied,
    ValidationError,
)
from agentbox.sessions import protocol
from agentbox.sessions.editor_connection import KEPT_FRAMES, EditorConnection
from agentbox.sessions.review_commands import COMMANDS
from agentbox.sessions.store import Changes, SessionStore
from agentbox.sessions.stored import StoredEditor, StoredSession

KEPT_SECONDS: Final = 60.0  # of a connection without a socket
_PAGE: Final = 256
_TOOL: Final = "agent:"  # before ids of an agent's tool calls: ids of the box have another prefix


class Editors:
    """All connections. Methods that take `changes` are called by a session within its commit."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self.connections: dict[str, EditorConnection] = {}
        self._changed = asyncio.Event()

    async def recover(self) -> None:
        """Loads what was there before session-host was killed."""
        for stored in await self._store.editors():
            connection = EditorConnection(stored)
            frames = await self._store.frames(stored.connection_id, 0, KEPT_FRAMES * 2)
            if frames:
                connection.taken = stored.sent = frames[-1][0]
            rows = await self._store.editor_requests(stored.connection_id)
            for key, row in rows.items():
                (connection.own if row.get("own") else connection.requests)[key] = row
            self.connections[stored.connection_id] = connection

    def wake(self) -> None:
        """After a commit."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def have_open(self, session_id: str) -> bool:
        """Whether an editor has that session open."""
        return any(True for _ in self._of(session_id))

    def update(
        self,
        changes: Changes,
        session: StoredSession,
        update: Mapping[str, Any],
        meta: Mapping[str, Any],
    ) -> None:
        """An update of the agent."""
        for connection in self._of(session.session_id):
            self.send_update(changes, connection, session.session_id, update, meta)

    def send_update(
        self,
        changes: Changes,
        connection: EditorConnection,
        session_id: str,
        update: Mapping[str, Any],
        meta: Mapping[str, Any],
    ) -> None:
        """An update to one editor."""
        if update.get("sessionUpdate") == "available_commands_update":
            update = {**update, "availableCommands": [*update["availableCommands"], *COMMANDS]}
        params = {**meta, "sessionId": session_id, "update": _prefixed(update)}
        connection.send_update(changes, params)

    def notice(self, changes: Changes, session: StoredSession, text: str) -> None:
        """Words of the box, as a message of the agent."""
        content = {"type": "text", "text": f"\n[agentbox] {text}\n"}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        self.update(changes, session, update, {})

    def forward(
        self, changes: Changes, session: StoredSession, method: str, params: Mapping[str, Any]
    ) -> None:
        """A notification that the protocol does not know, as it is."""
        told = {**params, "sessionId": session.session_id} if "sessionId" in params else params
        for connection in self._of(session.session_id):
            connection.send(changes, {"method": method, "params": told})

    def ask(
        self,
        changes: Changes,
        session: StoredSession,
        permission: Mapping[str, Any],
        params: Mapping[str, Any],
    ) -> None:
        """A permission that the agent asks for."""
        for connection in self._of(session.session_id):
            row = {
                "own": "permission",
                "session": session.session_id,
                "permission": permission["permission_id"],
            }
            call = _prefixed({**params["toolCall"], "title": f"“{permission['title']}”"})
            options = [
                {"optionId": one["option_id"], "name": one["name"], "kind": one["kind"]}
                for one in permission["options"]
            ]
            asked = {"sessionId": session.session_id, "toolCall": call, "options": options}
            connection.ask(changes, row, "session/request_permission", asked)

    def withdraw(
        self, changes: Changes, session: StoredSession, permission: Mapping[str, Any]
    ) -> None:
        """It is answered: an editor that still asks is told to stop."""
        for connection in self.connections.values():
            for key, row in list(connection.own.items()):
                if row.get("permission") == permission["permission_id"]:
                    connection.withdraw(changes, key)

    def finish_turn(
        self,
        changes: Changes,
        session: StoredSession,
        stop_reason: str,
        error: AdapterError | None,
    ) -> None:
        """The answer to the prompt that began the turn."""
        for connection in self.connections.values():
            for key, row in list(connection.requests.items()):
                if (row.get("session"), row.get("turn")) == (session.session_id, session.turn):
                    if error is None:
                        connection.respond(changes, key, "result", {"stopReason": stop_reason})
                    else:
                        connection.respond(changes, key, "error", error_of(error))

    async def frames(self, connection: EditorConnection, since: int) -> AsyncIterator[EditorFrame]:
        """Messages after that number, without end. Raises CursorExpired if some are gone, also when
        the reader is that slow. A newer subscription ends this one."""
        connection.reader = reader = connection.reader + 1
        connection.left_at = None
        stored = connection.stored
        first = await self._store.frames(stored.connection_id, since, 1)
        if (first and first[0][0] != since + 1) or (not first and since > stored.sent):
            raise _expired(since, first[0][0] if first else stored.sent)
        try:
            yield EditorFrame(n=since, received=stored.received)
            while connection.reader == reader:
                changed, sent = self._changed, since
                in_order = since < connection.joined_to
                connection.taken = max(connection.taken, min(stored.sent, since + _PAGE))
                for n, message in await self._store.frames(
                    stored.connection_id, since, _PAGE, in_order=in_order
                ):
                    if n != since + 1:  # one before it is committed later
                        break
                    since = n
                    yield EditorFrame(n=n, message=message)
                if since == sent:
                    if (gone := stored.sent - KEPT_FRAMES) > since:
                        raise _expired(since, gone + 1)
                    await changed.wait()
        finally:
            if connection.reader == reader:
                connection.left_at = time.monotonic()

    def find(self, connection_id: str) -> EditorConnection:
        """Raises NotFound."""
        if (found := self.connections.get(connection_id)) is None:
            raise NotFound(
                "cannot find this connection of an editor: it was closed",
                resource="editor",
                id=connection_id,
            )
        return found

    async def open(
        self,
        connection_id: str,
        *,
        principal: str,
        scopes: tuple[str, ...],
        agent: str,
        session: str,
    ) -> EditorConnection:
        """A new one, or one that was left. Raises PermissionDenied for another's."""
        found = self.connections.get(connection_id)
        if found is None:
            stored = StoredEditor(
                connection_id=connection_id,
                principal=principal,
                scopes=list(scopes),
                agent=agent,
                session=session,
            )
            found = self.connections[connection_id] = EditorConnection(stored)
            changes = Changes()
            found.save(changes)
            await self._store.commit(changes)
        elif found.stored.principal != principal:
            raise PermissionDenied(
                "cannot use this connection: it is another caller's", scope="agents:write"
            )
        found.stored.scopes = list(scopes)
        return found

    async def drop_left(self) -> list[EditorConnection]:
        """Removes connections whose editors have not come back."""
        bound = time.monotonic() - KEPT_SECONDS
        left = [
            one
            for one in self.connections.values()
            if one.left_at is not None and one.left_at < bound
        ]
        changes = Changes()
        for one in left:
            connection_id = one.stored.connection_id
            del self.connections[connection_id]
            for table in ("editors", "frames", "editor_requests"):
                changes.add(f"DELETE FROM {table} WHERE connection_id = ?", connection_id)
        await self._store.commit(changes)
        return left

    def _of(self, session_id: str) -> Iterator[EditorConnection]:
        return (one for one in self.connections.values() if session_id in one.stored.sessions)


def error_of(error: AdapterError) -> dict[str, Any]:
    """As the member `error` of an answer."""
    code = protocol.INTERNAL_ERROR
    if isinstance(error, NotFound):
        code = protocol.RESOURCE_NOT_FOUND
    elif isinstance(error, ValidationError):
        code = protocol.INVALID_PARAMS
    data = {"kind": error.code, "hint": error.hint, **error.members}
    return {"code": code, "message": error.message, "data": data}


def _expired(since: int, oldest: int) -> CursorExpired:
    return CursorExpired(
        f"cannot go on after message {since}: what follows it is no longer there",
        hint="connect anew, and load the session",
        oldest=oldest,
    )


def _prefixed(update: Mapping[str, Any]) -> dict[str, Any]:
    call = update.get("toolCallId")
    return {**update, "toolCallId": f"{_TOOL}{call}"} if isinstance(call, str) else {**update}
