"""sessions.db: sessions, what was said in them, and what is under way with agents and editors. What
belongs together is one commit: the lines that were read from an agent, their effect, and the place
where to read on.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import apsw

from agentbox.contracts.sessions import SessionItem
from agentbox.core.storage.sqlite import Database
from agentbox.sessions.stored import StoredCall, StoredEditor, StoredSession

MAX_BODY: Final = 32 << 10  # bytes of an item's data; longer ones are kept apart, by digest
_BEGINNING: Final = 1024  # characters of a text that stay in such an item

MIGRATIONS: Final = (
    """
    CREATE TABLE sessions (session_id TEXT PRIMARY KEY, name TEXT NOT NULL, open INTEGER NOT NULL,
        row TEXT NOT NULL) STRICT;
    CREATE TABLE items (seq INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
        cursor INTEGER NOT NULL, row TEXT NOT NULL, digest TEXT NOT NULL,
        UNIQUE (session_id, cursor)) STRICT;
    CREATE INDEX items_by_digest ON items (digest) WHERE digest != '';
    CREATE TABLE bodies (digest TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT;
    CREATE TABLE outbox (seq INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
        data BLOB NOT NULL) STRICT;
    CREATE INDEX outbox_by_session ON outbox (session_id, seq);
    CREATE TABLE calls (session_id TEXT NOT NULL, n INTEGER NOT NULL, row TEXT NOT NULL,
        PRIMARY KEY (session_id, n)) STRICT, WITHOUT ROWID;
    CREATE TABLE requests (session_id TEXT NOT NULL, rpc_id TEXT NOT NULL, message TEXT NOT NULL,
        PRIMARY KEY (session_id, rpc_id)) STRICT, WITHOUT ROWID;
    CREATE TABLE once (principal TEXT NOT NULL, request_id TEXT NOT NULL, session_id TEXT NOT NULL,
        turn INTEGER NOT NULL, PRIMARY KEY (principal, request_id)) STRICT, WITHOUT ROWID;
    CREATE TABLE editors (connection_id TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT;
    CREATE TABLE frames (connection_id TEXT NOT NULL, n INTEGER NOT NULL, message TEXT NOT NULL,
        PRIMARY KEY (connection_id, n)) STRICT, WITHOUT ROWID;
    CREATE TABLE editor_requests (connection_id TEXT NOT NULL, rpc_id TEXT NOT NULL,
        row TEXT NOT NULL, PRIMARY KEY (connection_id, rpc_id)) STRICT, WITHOUT ROWID;
    CREATE TABLE record (seq INTEGER PRIMARY KEY AUTOINCREMENT, row TEXT NOT NULL) STRICT;
    CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
    """,
    """
    CREATE INDEX once_by_session ON once (session_id, turn);
    """,
)
_OF_A_SESSION: Final = ("items", "outbox", "calls", "requests", "once", "sessions")
IN_RECORD: Final = "items_in_record"  # fact: number of the newest item that is in the record
# A body that no item has any more; its digest, twice.
DROP_BODY: Final = (
    "DELETE FROM bodies WHERE digest = ?"
    " AND NOT EXISTS (SELECT 1 FROM items WHERE items.digest = ? AND items.digest != '')"
)


class Changes:
    """Statements of one commit, in order."""

    def __init__(self) -> None:
        self._statements: list[tuple[str, tuple[Any, ...]]] = []

    def __bool__(self) -> bool:
        return bool(self._statements)

    def add(self, statement: str, *values: Any) -> None:
        """One statement with its parameters."""
        self._statements.append((statement, values))

    def save(self, session: StoredSession) -> None:
        """The row of a session."""
        session.touch()
        self.keep(session)

    def keep(self, session: StoredSession) -> None:
        """The row of a session in which nothing happened."""
        self.add(
            "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?)",
            session.session_id,
            session.name,
            int(session.is_open),
            session.dump(),
        )

    def append(self, item: SessionItem, session: StoredSession) -> None:
        """One item; its size counts in the session's."""
        wire = item.to_wire()
        body = json.dumps(wire["data"], separators=(",", ":"), ensure_ascii=False)
        session.text_bytes += len(body)
        digest = ""
        if len(body) > MAX_BODY:
            digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
            self.add("INSERT OR IGNORE INTO bodies VALUES (?, ?)", digest, body)
            wire = {**wire, "data": beginning(wire["data"]), "digest": digest}
        self.add(
            "INSERT INTO items (session_id, cursor, row, digest) VALUES (?, ?, ?, ?)",
            session.session_id,
            item.cursor,
            json.dumps(wire, separators=(",", ":")),
            digest,
        )

    def send(self, session_id: str, data: bytes) -> None:
        """A line for the agent."""
        self.add("INSERT INTO outbox (session_id, data) VALUES (?, ?)", session_id, data)

    def call(self, call: StoredCall) -> None:
        """A request that waits for the agent."""
        row = json.dumps({"method": call.method, "turn": call.turn})
        self.add("INSERT INTO calls VALUES (?, ?, ?)", call.session_id, call.n, row)

    def run(self, db: apsw.Connection) -> None:
        """The job of the writer."""
        for statement, values in self._statements:
            db.execute(statement, values)


def beginning(value: Any) -> Any:
    """The same with long texts cut."""
    if isinstance(value, str):
        return value[:_BEGINNING]
    if isinstance(value, dict):
        return {key: beginning(member) for key, member in value.items()}
    if isinstance(value, list):
        return [beginning(member) for member in value[:64]]
    return value


class SessionStore:
    """Open it before use. A commit is on disk when its call returns. Raises BackendError."""

    def __init__(self, directory: Path) -> None:
        self._database = Database(directory / "sessions.db", MIGRATIONS, "sessions", "session-host")

    async def open(self) -> None:
        """Raises BackendError if the file is damaged, or of a newer release."""
        await self._database.open()

    async def close(self) -> None:
        await self._database.close()

    async def commit(self, changes: Changes) -> None:
        """All of them or none."""
        if changes:
            await self._database.write(changes.run)

    async def sessions(self) -> list[StoredSession]:
        """All, oldest first."""
        rows = await self._rows("SELECT row FROM sessions ORDER BY session_id")
        return [StoredSession.parse(text) for (text,) in rows]

    async def calls(self, session_id: str) -> dict[int, StoredCall]:
        """Requests that wait for an agent, by number."""
        rows = await self._rows("SELECT n, row FROM calls WHERE session_id = ?", session_id)
        return {n: StoredCall(session_id=session_id, n=n, **json.loads(text)) for n, text in rows}

    async def requests(self, session_id: str) -> list[dict[str, Any]]:
        """Requests of an agent that wait for an answer."""
        rows = await self._rows("SELECT message FROM requests WHERE session_id = ?", session_id)
        return [json.loads(text) for (text,) in rows]

    async def outbox(self, session_id: str) -> list[tuple[int, bytes]]:
        """Lines that agent-host has not taken, with their numbers."""
        rows = await self._rows(
            "SELECT seq, data FROM outbox WHERE session_id = ? ORDER BY seq LIMIT 64", session_id
        )
        return [(seq, bytes(data)) for seq, data in rows]

    async def items(
        self, session_id: str, since: int, limit: int, *, whole: bool = False
    ) -> list[SessionItem]:
        """Items with a larger cursor; `whole`: with bodies that are kept apart."""
        rows = await self._rows(
            "SELECT items.row, bodies.data FROM items LEFT JOIN bodies"
            " ON bodies.digest = items.digest AND items.digest != ''"
            " WHERE session_id = ? AND cursor > ? ORDER BY cursor LIMIT ?",
            session_id,
            since,
            limit,
        )
        return list(_items(rows, whole=whole))

    async def rows_after(
        self, session_id: str, cursor: int, limit: int
    ) -> list[tuple[int, str, str, int | None]]:
        """Items after that one: cursor, row, digest and size of a body that is kept apart."""
        return await self._rows(
            "SELECT items.cursor, items.row, items.digest, length(bodies.data)"
            " FROM items LEFT JOIN bodies"
            " ON bodies.digest = items.digest AND items.digest != ''"
            " WHERE session_id = ? AND cursor > ? ORDER BY cursor LIMIT ?",
            session_id,
            cursor,
            limit,
        )

    async def newest_items(self, session_id: str, limit: int) -> list[SessionItem]:
        """The last ones, oldest first."""
        rows = await self._rows(
            "SELECT row, NULL FROM items WHERE session_id = ? ORDER BY cursor DESC LIMIT ?",
            session_id,
            limit,
        )
        return list(_items(rows[::-1], whole=False))

    async def once(self, principal: str, request_id: str) -> tuple[str, int] | None:
        """Session and turn that an earlier call with this request id made."""
        rows = await self._rows(
            "SELECT session_id, turn FROM once WHERE principal = ? AND request_id = ?",
            principal,
            request_id,
        )
        return rows[0] if rows else None

    async def forget(self, session_id: str) -> bool:
        """Removes all that is stored of a session; False if the record has not all of it yet."""
        only = "SELECT digest FROM items WHERE session_id = ? AND digest != ''"

        def job(db: apsw.Connection) -> bool:
            waiting = (
                "SELECT 1 FROM items WHERE session_id = ?"
                " AND seq > coalesce((SELECT value FROM facts WHERE name = ?), 0)"
            )
            if list(db.execute(waiting, (session_id, IN_RECORD))):
                return False
            digests = [digest for (digest,) in db.execute(only, (session_id,))]
            for table in _OF_A_SESSION:
                db.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))
            for digest in digests:
                db.execute(DROP_BODY, (digest, digest))
            return True

        return await self._database.write(job)

    async def newest(self) -> int:
        """The number of the newest item of all."""
        rows = await self._rows("SELECT max(seq) FROM items")
        return int(rows[0][0] or 0)

    async def read_record(
        self, after: int, limit: int, fill: Callable[[apsw.Connection], None]
    ) -> list[tuple[int, str]]:
        """Lines of the record after that number, which removes those up to it. `fill` adds to the
        record before."""

        def job(db: apsw.Connection) -> list[tuple[int, str]]:
            db.execute("DELETE FROM record WHERE seq <= ?", (after,))
            fill(db)
            return list(
                db.execute(
                    "SELECT seq, row FROM record WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
                )
            )

        return await self._database.write(job)

    async def editors(self) -> list[StoredEditor]:
        rows = await self._rows("SELECT row FROM editors")
        return [StoredEditor.parse(text) for (text,) in rows]

    async def frames(
        self, connection_id: str, since: int, limit: int, *, in_order: bool = False
    ) -> list[tuple[int, Any]]:
        """Messages to an editor after that number; `in_order`: after all commits so far."""
        statement = (
            "SELECT n, message FROM frames WHERE connection_id = ? AND n > ? ORDER BY n LIMIT ?"
        )

        def job(db: apsw.Connection) -> list[tuple[int, str]]:
            return list(db.execute(statement, (connection_id, since, limit)))

        rows = await (self._database.write(job) if in_order else self._database.read(job))
        return [(n, json.loads(text)) for n, text in rows]

    async def editor_requests(self, connection_id: str) -> dict[str, dict[str, Any]]:
        """Requests of an editor, or of ours to it, that wait, by id as JSON."""
        rows = await self._rows(
            "SELECT rpc_id, row FROM editor_requests WHERE connection_id = ?", connection_id
        )
        return {rpc_id: json.loads(text) for rpc_id, text in rows}

    async def _rows(self, statement: str, *values: Any) -> list[Any]:
        return await self._database.read(lambda db: list(db.execute(statement, values)))


def _items(rows: Iterable[tuple[str, str | None]], *, whole: bool) -> Iterable[SessionItem]:
    for text, body in rows:
        wire = json.loads(text)
        if whole and body is not None:
            wire["data"] = json.loads(body)
        yield SessionItem.from_wire(wire)
