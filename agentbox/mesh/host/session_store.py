"""The sessions of a host on disk, `mesh/sessions.db`. Of tokens and of instance secrets there is only the SHA-256."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import structlog

from agentbox.contracts.mesh import MeshSession, decode_known
from agentbox.core import clock
from agentbox.core.slot_errors import AdapterError, BackendError, ValidationError
from agentbox.core.storage.damaged_rows import UNREADABLE, DamagedRows, State, damaged_row
from agentbox.core.storage.sqlite import Database
from agentbox.core.storage.sqlite_text import each_row
from agentbox.core.storage.stored_keys import is_sound, to_bindable

FILE = "sessions.db"
_log = structlog.get_logger()
TOKEN_RETENTION = timedelta(
    days=1
)  # after the end, so that a late beat can be told why it is refused
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
    """What the host reads at its start: SHA-256 of each instance's secret; that of each token that still means something,
    with its session; the active sessions; and why the others of those tokens ended."""

    secrets: dict[str, bytes]
    tokens: dict[bytes, str]
    active: tuple[MeshSession, ...]
    ended: dict[str, str]


class SessionStore:
    """Every change is durable when its call returns. Rows that cannot be read are noted and left as they are. Raises
    BackendError, QuotaExceeded."""

    def __init__(self, directory: Path) -> None:
        self._damaged, self._fault = DamagedRows(FILE), ""
        self._db = Database(directory / FILE, MIGRATIONS, "mesh", "sqlite")

    async def load(self) -> StoredSessions | None:
        """Makes what is missing, forgets what is too old, and reads the rest, without what cannot be read. None where nothing
        can: `condition` says why, and it may be called again."""
        try:
            await self._db.open()
            await self.discard_old()
            stored = await self._read_all()
        except AdapterError as error:
            await self._db.close()
            if error.message != self._fault:
                _log.error("mesh sessions cannot be read", reason=error.message)
            self._fault = error.message
            return None
        self._fault = ""
        return stored

    @property
    def condition(self) -> tuple[State, str]:
        """How the store is, and why."""
        return ("down", self._fault) if self._fault else self._damaged.adjust_state("ok", "")

    def check_open(self) -> None:
        """Raises BackendError while nothing can be read."""
        if self._fault:
            raise BackendError(
                self._fault, hint="restore the file from a copy", slot="mesh", impl="sqlite"
            )

    async def close(self) -> None:
        await self._db.close()

    async def discard_old(self) -> None:
        """Removes tokens of sessions that ended a day ago, and sessions that ended a month ago."""
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
        """SHA-256 of each token that still means something, and its session."""
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
        """All in one transaction: sessions as they are now, the token of the last of them, tokens that mean nothing any
        more, and the secret's hash of an instance that is new."""
        dropped_tokens = tuple(dropped)
        await self._db.write(lambda db: _save(db, sessions, token, dropped_tokens, secret))

    async def show(self, session_id: str) -> MeshSession | None:
        """Raises IntegrityError for one that cannot be read."""
        rows = await self._select("id, document", "sessions WHERE id = ?", session_id)
        return _parse_session(rows[0]) if rows else None

    async def page(self, filters: dict[str, str], limit: int, after: str) -> list[MeshSession]:
        """In order of id; `wanted` are columns and their values."""
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
        """What a query of these columns finds, of which the first names a row."""
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
    """Raises IntegrityError for a row that holds none."""
    try:
        return decode_known(MeshSession, json.loads(row[1]))
    except (*UNREADABLE, ValidationError):
        raise damaged_row(f"session {row[0]}") from None


def _parse_pair(kind: str, row: tuple[Any, ...]) -> tuple[str, bytes]:
    if not is_sound(row[0]):
        raise damaged_row(f"{kind} {row[0]}")
    return row[0], row[1]


def end_session(session: MeshSession, reason: str, ended_at: datetime) -> MeshSession:
    """The same session, over."""
    state = "closed" if reason == "closed" else "evicted"
    return MeshSession.from_wire(
        {**session.to_wire(), "state": state, "reason": reason, "ended_at": clock.to_wire(ended_at)}
    )
