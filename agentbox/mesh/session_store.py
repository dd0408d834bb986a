"""The sessions of a host on disk, `mesh/sessions.db`. Of tokens and of instance secrets there is only the SHA-256."""

import json
from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime, timedelta
from pathlib import Path

import apsw

from agentbox import clock
from agentbox.adapters.sqlite import Database, rows
from agentbox.mesh.records import MeshSession

FILE = "sessions.db"
TOKEN_KEPT = timedelta(days=1)  # after the end, so that a late beat can be told why it is refused
SESSION_KEPT = timedelta(days=30)
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


class SessionStore:
    """Opened once by the host; every change is durable when its call returns. Raises BackendError, QuotaExceeded."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db = Database(folder / FILE, MIGRATIONS, "mesh", "sqlite")

    async def open(self) -> None:
        """Makes what is missing, and forgets what is too old."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        await self._db.open()
        await self.forget()

    async def close(self) -> None:
        await self._db.close()

    async def forget(self) -> None:
        """Removes tokens of sessions that ended a day ago, and sessions that ended a month ago."""
        now = clock.now()
        tokens, sessions = clock.to_wire(now - TOKEN_KEPT), clock.to_wire(now - SESSION_KEPT)
        await self._db.write(lambda db: _forget(db, tokens, sessions))

    async def secrets(self) -> dict[str, bytes]:
        """SHA-256 of each known instance's secret."""
        return dict(await self._db.read(lambda db: rows(db, "SELECT id, secret FROM instances")))

    async def active(self) -> list[MeshSession]:
        found = await self._db.read(lambda db: rows(db, "SELECT document FROM sessions WHERE state = 'active'"))
        return [_session(document) for (document,) in found]

    async def tokens(self) -> dict[bytes, str]:
        """SHA-256 of each token that still means something, and its session."""
        return dict(await self._db.read(lambda db: rows(db, "SELECT sha256, session_id FROM tokens")))

    async def save(
        self,
        *changed: MeshSession,
        token: bytes | None = None,
        dropped: Iterable[bytes] = (),
        secret: bytes | None = None,
    ) -> None:
        """All in one transaction: sessions as they are now, the token of the last of them, tokens that mean nothing any
        more, and the secret's hash of an instance that is new."""
        gone = tuple(dropped)
        await self._db.write(lambda db: _save(db, changed, token, gone, secret))

    async def show(self, session_id: str) -> MeshSession | None:
        found = await self._db.read(lambda db: rows(db, "SELECT document FROM sessions WHERE id = ?", (session_id,)))
        return _session(found[0][0]) if found else None

    async def page(self, wanted: dict[str, str], limit: int, after: str) -> list[MeshSession]:
        """In order of id; `wanted` are columns and their values."""
        where = "".join(f" AND {column} = ?" for column in wanted)
        values = (after, *wanted.values(), limit)
        found = await self._db.read(
            lambda db: rows(db, f"SELECT document FROM sessions WHERE id > ?{where} ORDER BY id LIMIT ?", values)
        )
        return [_session(document) for (document,) in found]


def _forget(db: apsw.Connection, tokens: str, sessions: str) -> None:
    db.execute("DELETE FROM tokens WHERE session_id IN (SELECT id FROM sessions WHERE ended_at < ?)", (tokens,))
    db.execute("DELETE FROM sessions WHERE ended_at < ?", (sessions,))


def _save(
    db: apsw.Connection, changed: tuple[MeshSession, ...], token: bytes | None, dropped: tuple[bytes, ...], secret: bytes | None
) -> None:  # fmt: skip
    for session in changed:
        ended = None if session.ended_at is None else clock.to_wire(session.ended_at)
        document = json.dumps(session.to_wire())
        db.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
            " state = excluded.state, ended_at = excluded.ended_at, document = excluded.document",
            (session.id, session.instance_id, session.image_hash, session.state, ended, document),
        )
    for sha256 in dropped:
        db.execute("DELETE FROM tokens WHERE sha256 = ?", (sha256,))
    if token is not None:
        db.execute("INSERT INTO tokens VALUES (?, ?)", (token, changed[-1].id))
    if secret is not None:
        db.execute("INSERT OR IGNORE INTO instances VALUES (?, ?)", (changed[-1].instance_id, secret))


def _session(document: str) -> MeshSession:
    found = json.loads(document)
    names = {one.name for one in fields(MeshSession)}
    return MeshSession.from_wire({name: value for name, value in found.items() if name in names})


def ended(session: MeshSession, reason: str, at: datetime) -> MeshSession:
    """The same session, over."""
    state = "closed" if reason == "closed" else "evicted"
    return MeshSession.from_wire({**session.to_wire(), "state": state, "reason": reason, "ended_at": clock.to_wire(at)})
