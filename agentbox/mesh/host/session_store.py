"""Persists the sessions of a host in `mesh/sessions.db`. Tokens and instance secrets are stored as
SHA-256 only."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import structlog

from agentbox.contracts.mesh import MeshSession, decode_lenient
from agentbox.core import clock
from agentbox.core.slot_errors import AdapterError, BackendError, ValidationError
from agentbox.core.storage.damaged_rows import UNREADABLE, DamagedRows, State, damaged_row
from agentbox.core.storage.invalid_utf8_keys import is_sound, to_bindable
from agentbox.core.storage.sqlite import Database
from agentbox.core.storage.sqlite_text import each_row

FILE = "sessions.db"
_log = structlog.get_logger()
TOKEN_RETENTION = timedelta(days=1)  # after the end, so that a late heartbeat gets the reason
SESSION_RETENTION = timedelta(days=30)
MIGRATIONS = (
    """
    CREATE TABLE instances (id TEXT PRIMARY KEY, secret BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, instance_id TEXT NOT NULL, image_hash TEXT NOT NULL, state TEXT NOT NULL, ended_at TEXT,
        document TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_by_instance ON sessions (instance_id, id);
    CREATE TABLE tokens (
        sha256 BLOB PRIMARY KEY, session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    """,
)


@dataclass(frozen=True, slots=True)
class StoredSessions:
    """What the host loads at start: SHA-256 of each instance secret; SHA-256 of each valid token
    with its session; active sessions; why the other sessions of these tokens ended."""

    secrets: dict[str, bytes]
    tokens: dict[bytes, str]
    active: tuple[MeshSession, ...]
    ended: dict[str, str]


class SessionStore:
    """Changes are durable on return. Unreadable rows are reported and kept. Raises BackendError,
    QuotaExceeded."""

    def __init__(self, directory: Path) -> None:
        self._damaged, self._fault = DamagedRows(FILE), ""
        self._db = Database(directory / FILE, MIGRATIONS, "mesh", "sqlite")

    async def load(self) -> StoredSessions | None:
        """Creates the database, deletes old rows, and loads the readable ones. Returns None on
        failure: see `condition`; it may be called again."""
        try:
            await self._db.open()
            await self.discard_old()
            stored = await self._read_all()
        except AdapterError as error:
            await self._db.close()
            if error.message != self._fault:
                _log.error("cannot read the mesh sessions", reason=error.message)
            self._fault = error.message
            return None
        self._fault = ""
        return stored

    @property
    def condition(self) -> tuple[State, str]:
        """The state of the store, with a reason."""
        return ("down", self._fault) if self._fault else self._damaged.adjust_state("ok", "")

    def check_open(self) -> None:
        """Raises BackendError while the store cannot be read."""
        if self._fault:
            raise BackendError(
                self._fault, hint="restore the file from a backup", slot="mesh", impl="sqlite"
            )

    async def close(self) -> None:
        await self._db.close()

    async def discard_old(self) -> None:
        """Deletes tokens of sessions that ended a day ago, and sessions that ended a month ago."""
        now = clock.now()
        tokens, sessions = (
            clock.to_wire(now - TOKEN_RETENTION),
            clock.to_wire(now - SESSION_RETENTION),
        )
        await self._db.write(lambda db: _delete_old(db, tokens, sessions))

    async def _read_all(self) -> StoredSessions:
        secret_rows = await self._select("id, secret", "instances")
        active_rows = await self._select("id, document", "sessions WHERE state = 'active'")
        ended_rows = await self._select(
            "id, document",
            "sessions WHERE state != 'active' AND id IN (SELECT session_id FROM tokens)",
        )
        return StoredSessions(
            secrets=dict(
                self._damaged.readable_rows(secret_rows, partial(_parse_pair, "instance"))
            ),
            tokens=await self.tokens(),
            active=self._damaged.readable_rows(active_rows, _parse_session),
            ended={
                session.id: session.reason
                for session in self._damaged.readable_rows(ended_rows, _parse_session)
            },
        )

    async def tokens(self) -> dict[bytes, str]:
        """SHA-256 of each valid token, with its session."""
        rows = await self._select("session_id, sha256", "tokens")
        return {
            sha256: session
            for session, sha256 in self._damaged.readable_rows(
                rows, partial(_parse_pair, "token of session")
            )
        }

    async def save(
        self,
        *sessions: MeshSession,
        token: bytes | None = None,
        dropped: Iterable[bytes] = (),
        secret: bytes | None = None,
    ) -> None:
        """In one transaction: the sessions, a token of the last session, tokens to delete, and the
        secret hash of a new instance."""
        dropped_tokens = tuple(dropped)
        await self._db.write(lambda db: _save(db, sessions, token, dropped_tokens, secret))

    async def show(self, session_id: str) -> MeshSession | None:
        """Raises IntegrityError for a damaged row."""
        rows = await self._select("id, document", "sessions WHERE id = ?", session_id)
        return _parse_session(rows[0]) if rows else None

    async def page(self, filters: dict[str, str], limit: int, after: str) -> list[MeshSession]:
        """A page in order of id; `filters` maps columns to values."""
        conditions = "".join(f" AND {column} = ?" for column in filters)
        source, sessions = (
            f"sessions WHERE id > CAST(? AS TEXT){conditions} ORDER BY id LIMIT ?",
            list[MeshSession](),
        )
        while missing := limit - len(sessions):
            rows = await self._select(
                "id, document", source, to_bindable(after), *filters.values(), missing
            )
            sessions += self._damaged.readable_rows(rows, _parse_session)
            if len(rows) < missing:
                break
            after = rows[-1][0]
        return sessions

    async def _select(self, columns: str, source: str, *values: Any) -> list[tuple[Any, ...]]:
        """Selects columns, the first of which identifies a row."""
        sql, names = f"SELECT {columns} FROM {source}", columns.split(", ")
        return await self._db.read(lambda db: list(each_row(db, sql, values, names, key_columns=1)))


def _delete_old(db: apsw.Connection, tokens: str, sessions: str) -> None:
    db.execute(
        "DELETE FROM tokens WHERE session_id IN (SELECT id FROM sessions WHERE ended_at < ?)",
        (tokens,),
    )
    db.execute("DELETE FROM sessions WHERE ended_at < ?", (sessions,))


def _save(
    db: apsw.Connection,
    sessions: tuple[MeshSession, ...],
    token: bytes | None,
    dropped: tuple[bytes, ...],
    secret: bytes | None,
) -> None:
    for session in sessions:
        ended_at = None if session.ended_at is None else clock.to_wire(session.ended_at)
        document = json.dumps(session.to_wire())
        db.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
            " state = excluded.state, ended_at = excluded.ended_at, document = excluded.document",
            (
                session.id,
                session.instance_id,
                session.image_hash,
                session.state,
                ended_at,
                document,
            ),
        )
    for sha256 in dropped:
        db.execute("DELETE FROM tokens WHERE sha256 = ?", (sha256,))
    if token is not None:
        db.execute("INSERT INTO tokens VALUES (?, ?)", (token, sessions[-1].id))
    if secret is not None:
        db.execute(
            "INSERT OR IGNORE INTO instances VALUES (?, ?)", (sessions[-1].instance_id, secret)
        )


def _parse_session(row: tuple[Any, ...]) -> MeshSession:
    """Raises IntegrityError for a damaged row."""
    try:
        return decode_lenient(MeshSession, json.loads(row[1]))
    except (*UNREADABLE, ValidationError):
        raise damaged_row(f"session {row[0]}") from None


def _parse_pair(kind: str, row: tuple[Any, ...]) -> tuple[str, bytes]:
    if not is_sound(row[0]):
        raise damaged_row(f"{kind} {row[0]}")
    return row[0], row[1]


def end_session(session: MeshSession, reason: str, ended_at: datetime) -> MeshSession:
    """The session, marked as ended."""
    state = "closed" if reason == "closed" else "evicted"
    return MeshSession.from_wire(
        {**session.to_wire(), "state": state, "reason": reason, "ended_at": clock.to_wire(ended_at)}
    )
