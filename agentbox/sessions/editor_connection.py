"""One connection of an editor: what it is sent, and the requests that wait on it."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any, Final

from agentbox.sessions.coalescing import BEHIND, joined
from agentbox.sessions.store import Changes
from agentbox.sessions.stored import StoredEditor

KEPT_FRAMES: Final = 4096  # messages that a reconnecting editor may have missed
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

    def ask(
        self, changes: Changes, row: dict[str, Any], method: str, params: Mapping[str, Any]
    ) -> None:
        """A request of ours; `row` says what it is about."""
        self.stored.ours += 1
        own_id = f"{OWN_ID}{self.stored.ours}"
        self.remember(changes, json.dumps(own_id), row)
        self.send(changes, {"id": own_id, "method": method, "params": params})

    def withdraw(self, changes: Changes, key: str) -> None:
        """The answer to a request of ours is no longer needed."""
        self.forget(changes, key)
        params = {"requestId": json.loads(key)}
        self.send(changes, {"method": "$/cancel_request", "params": params})

    def respond(self, changes: Changes, key: str, member: str, value: object) -> None:
        """The answer to a request of the editor, `result` or `error`, once."""
        if self.forget(changes, key) is not None:
            self.send(changes, {"id": json.loads(key), member: value})
