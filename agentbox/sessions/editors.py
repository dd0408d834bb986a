"""Connections of editors, and what they are told. A connection outlives the socket of its editor by
60 seconds; its messages are numbered in both directions, so that none is lost or doubled.
"""

import asyncio
import json
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
from agentbox.sessions.coalescing import BEHIND, joined
from agentbox.sessions.review_commands import COMMANDS
from agentbox.sessions.store import Changes, SessionStore
from agentbox.sessions.stored import StoredEditor, StoredSession

KEPT_SECONDS: Final = 60.0  # of a connection without a socket
KEPT_FRAMES: Final = 4096  # messages that a reconnecting editor may have missed
_PAGE: Final = 256
_TOOL: Final = "agent:"  # before ids of an agent's tool calls: ids of the box have another prefix
OWN_ID: Final = "agentbox-"  # before ids of our requests


class EditorConnection:
    """`requests`: those of the editor that wait, by their id as JSON, each with session and turn
    once there is one; `own`: ours to it, with what they ask."""

    def __init__(self, stored: StoredEditor) -> None:
        self.stored = stored
        self.requests: dict[str, dict[str, Any]] = {}
        self.own: dict[str, dict[str, Any]] = {}
        self.lock = asyncio.Lock()
        self.left_at: float | None = time.monotonic()
        self.reader = 0  # the newest subscription
        self.taken = stored.sent  # newest message that a reader has, or is about to read
        self.joined_to = 0  # newest message that was changed after it was made
        self._newest: tuple[int, Mapping[str, Any]] | None = None

    def send(self, changes: Changes, message: Mapping[str, Any]) -> None:
        """A message to the editor."""
        stored = self.stored
        stored.sent += 1
        changes.add(
            "INSERT INTO frames VALUES (?, ?, ?)",
            stored.connection_id,
            stored.sent,
            json.dumps({"jsonrpc": "2.0", **message}),
        )
        changes.add(
            "DELETE FROM frames WHERE connection_id = ? AND n <= ?",
            stored.connection_id,
            stored.sent - KEPT_FRAMES,
        )
        self.save(changes)

    def send_update(self, changes: Changes, params: Mapping[str, Any]) -> None:
        """A `session/update`; joined with the newest message if the editor is far behind, and no
        reader has that one yet."""
        stored, newest = self.stored, self._newest
        both = None
        if newest is not None and stored.sent - self.taken > BEHIND:
            n, before = newest
            both = joined(before, params) if n == stored.sent else None
        if both is None:
            self.send(changes, {"method": "session/update", "params": params})
            self._newest = (stored.sent, params)
            return
        self._newest = (stored.sent, both)
        self.joined_to = stored.sent
        message = {"jsonrpc": "2.0", "method": "session/update", "params": both}
        changes.add(
            "UPDATE frames SET message = ? WHERE connection_id = ? AND n = ?",
            json.dumps(message),
            stored.connection_id,
            stored.sent,
        )

    def save(self, changes: Changes) -> None:
        """Its row."""
        changes.add(
            "INSERT OR REPLACE INTO editors VALUES (?, ?)",
            self.stored.connection_id,
            self.stored.dump(),
        )

    def remember(self, changes: Changes, key: str, row: dict[str, Any]) -> None:
        """A request that waits: of the editor, or ours."""
        (self.own if row.get("own") else self.requests)[key] = row
        changes.add(
            "INSERT OR REPLACE INTO editor_requests VALUES (?, ?, ?)",
            self.stored.connection_id,
            key,
            json.dumps(row),
        )

    def forget(self, changes: Changes, key: str) -> dict[str, Any] | None:
        """It is answered."""
        changes.add(
            "DELETE FROM editor_requests WHERE connection_id = ? AND rpc_id = ?",
            self.stored.connection_id,
            key,
        )
        return self.requests.pop(key, None) or self.own.pop(key, None)

    def respond(self, changes: Changes, key: str, member: str, value: object) -> None:
        """The answer to a request of the editor, `result` or `error`, once."""
        if self.forget(changes, key) is not None:
            self.send(changes, {"id": json.loads(key), member: value})


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
            connection.stored.ours += 1
            key = json.dumps(f"{OWN_ID}{connection.stored.ours}")
            row = {
                "own": "permission",
                "session": session.session_id,
                "permission": permission["permission_id"],
            }
            connection.remember(changes, key, row)
            call = _prefixed({**params["toolCall"], "title": f"“{permission['title']}”"})
            options = [
                {"optionId": one["option_id"], "name": one["name"], "kind": one["kind"]}
                for one in permission["options"]
            ]
            connection.send(
                changes,
                {
                    "id": json.loads(key),
                    "method": "session/request_permission",
                    "params": {
                        "sessionId": session.session_id,
                        "toolCall": call,
                        "options": options,
                    },
                },
            )

    def withdraw(
        self, changes: Changes, session: StoredSession, permission: Mapping[str, Any]
    ) -> None:
        """It is answered: an editor that still asks is told to stop."""
        for connection in self.connections.values():
            for key, row in list(connection.own.items()):
                if row.get("permission") == permission["permission_id"]:
                    connection.forget(changes, key)
                    connection.send(
                        changes,
                        {"method": "$/cancel_request", "params": {"requestId": json.loads(key)}},
                    )

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
        """Messages after that number, without end. Raises CursorExpired if some are gone. A newer
        subscription ends this one."""
        connection.reader = reader = connection.reader + 1
        connection.left_at = None
        stored = connection.stored
        first = await self._store.frames(stored.connection_id, since, 1)
        if (first and first[0][0] != since + 1) or (not first and since > stored.sent):
            raise CursorExpired(
                f"cannot go on after message {since}: it is no longer there",
                hint="connect anew, and load the session",
                oldest=first[0][0] if first else stored.sent,
            )
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


def _prefixed(update: Mapping[str, Any]) -> dict[str, Any]:
    call = update.get("toolCallId")
    return {**update, "toolCallId": f"{_TOOL}{call}"} if isinstance(call, str) else {**update}
