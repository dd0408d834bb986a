"""The sessions of people in `access.db`. Only hashes of the two halves are stored."""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import apsw
import structlog

from agentbox.api.auth.access_store import FILE, AccessStore
from agentbox.api.auth.authentication import Caller
from agentbox.api.auth.login_codes import Subject
from agentbox.api.auth.users import UserStore
from agentbox.contracts.logins import MAX_LOGINS, Login
from agentbox.core import clock
from agentbox.core.frozen import frozen
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import AdapterError, NotFound
from agentbox.core.storage.damaged_rows import DamagedRows, damaged_row
from agentbox.core.storage.sqlite import Database
from agentbox.core.storage.sqlite_text import each_row

_BYTES: Final = 32
_SAVE_SECONDS: Final = 60  # the use of a session is stored at most this late
_COLUMNS: Final = (
    "id",
    "cookie_sha256",
    "key_sha256",
    "user",
    "token_id",
    "created_at",
    "used_at",
    "expires_at",
)
_NAMES: Final = ", ".join(_COLUMNS)
_log = structlog.get_logger()


@frozen
class StoredLogin:
    """A row. `saved_at` is the `used_at` of the store."""

    id: str
    cookie_sha256: bytes
    key_sha256: bytes
    subject: Subject
    created_at: datetime
    used_at: datetime
    expires_at: datetime
    saved_at: datetime


@frozen
class LoginTimes:
    """Seconds after which a session ends: without use, and in all."""

    idle: int
    total: int


class LoginStore:
    """`caller_of` is the present caller of a subject, None for one that has ended. The key of a
    session of the first admin token is bound to that token: another token ends it.
    """

    def __init__(
        self,
        store: AccessStore,
        users: UserStore,
        caller_of: Callable[[Subject], Caller | None],
        times: LoginTimes,
        admin_sha256: bytes,
    ) -> None:
        self._store, self._caller_of, self._times = store, caller_of, times
        self._admin_sha256 = admin_sha256
        self._logins: dict[bytes, StoredLogin] = {}
        self._creating = asyncio.Lock()
        self._saving: set[asyncio.Task[None]] = set()
        self._users = users
        store.add(self._load)
        users.subscribe(self._user_changed)

    def find(self, cookies: Collection[str], key: str) -> Caller | None:
        """The caller of the session with one of these cookies and that key; None for one that is
        unknown or has ended. It is used then.
        """
        for cookie in cookies:
            login = self._logins.get(_digest(cookie))
            if login is not None and hmac.compare_digest(
                login.key_sha256, self._key_digest(login.subject, key)
            ):
                caller = self._caller(login)
                if caller is not None:
                    self._use(login)
                return caller
        return None

    def renew(self, id: str) -> Caller | None:
        """The present caller of a session; None if it has ended."""
        login = next((one for one in self._logins.values() if one.id == id), None)
        return None if login is None else self._caller(login)

    async def create(self, subject: Subject) -> tuple[str, str, Login]:
        """Cookie, key and record. Raises NotFound for a subject that has ended, BackendError."""
        db = await self._store.ensure_open()
        cookie, key = secrets.token_urlsafe(_BYTES), secrets.token_urlsafe(_BYTES)
        now = clock.now()
        login = StoredLogin(
            id=uuid7(),
            cookie_sha256=_digest(cookie),
            key_sha256=self._key_digest(subject, key),
            subject=subject,
            created_at=now,
            used_at=now,
            expires_at=now + timedelta(seconds=self._times.total),
            saved_at=now,
        )
        async with self._creating, self._users.unchanged(subject.user):
            if self._caller_of(subject) is None:
                raise NotFound(
                    "cannot sign in: the user or token has ended", resource="user", id=""
                )
            ended = self._surplus(subject)
            await db.write(lambda db: _replace(db, login, ended))
            for one in ended:
                self._logins.pop(one.cookie_sha256, None)
            self._logins[login.cookie_sha256] = login
        return cookie, key, self._shown(login)

    async def all(self) -> tuple[Login, ...]:
        """Sessions that have not ended, oldest first. Raises BackendError."""
        await self._store.open_existing()
        active = [login for login in self._logins.values() if self._caller(login) is not None]
        return tuple(self._shown(login) for login in sorted(active, key=lambda login: login.id))

    def get(self, id: str) -> Login | None:
        """The record of a session; None for an unknown one."""
        login = next((one for one in self._logins.values() if one.id == id), None)
        return None if login is None else self._shown(login)

    async def end(self, id: str) -> None:
        """Ends a session, at once also for concurrent calls. Raises NotFound, BackendError."""
        db = await self._store.ensure_open()
        login = next((one for one in self._logins.values() if one.id == id), None)
        if login is None or self._logins.pop(login.cookie_sha256, None) is None:
            raise NotFound("cannot end this session: unknown id", resource="session", id=id[:64])
        await db.write(lambda db: db.execute("DELETE FROM sessions WHERE id = ?", (id,)))

    async def close(self) -> None:
        """Waits for what is being stored."""
        if self._saving:
            await asyncio.wait(set(self._saving))

    def _caller(self, login: StoredLogin) -> Caller | None:
        now = clock.now()
        if now >= login.expires_at or now >= self._idle_at(login):
            return None
        caller = self._caller_of(login.subject)
        return None if caller is None else replace(caller, login_id=login.id)

    def _idle_at(self, login: StoredLogin) -> datetime:
        return login.used_at + timedelta(seconds=self._times.idle)

    def _shown(self, login: StoredLogin) -> Login:
        caller = self._caller_of(login.subject)
        return Login(
            id=login.id,
            principal="" if caller is None else caller.principal,
            user=login.subject.user,
            token_id=login.subject.token_id,
            created_at=login.created_at,
            used_at=login.used_at,
            idle_at=self._idle_at(login),
            expires_at=login.expires_at,
        )

    def _surplus(self, subject: Subject) -> list[StoredLogin]:
        """Sessions that have ended, and those that make room for one more of the subject."""
        ended = [login for login in self._logins.values() if self._caller(login) is None]
        own = [
            login
            for login in self._logins.values()
            if login.subject.owner == subject.owner and login not in ended
        ]
        own.sort(key=lambda login: login.used_at)
        return ended + own[: max(0, len(own) + 1 - MAX_LOGINS)]

    def _use(self, login: StoredLogin) -> None:
        now = clock.now()
        saves = (now - login.saved_at).total_seconds() >= _SAVE_SECONDS
        used = replace(login, used_at=now, saved_at=now if saves else login.saved_at)
        self._logins[login.cookie_sha256] = used
        if saves:
            task = asyncio.get_running_loop().create_task(self._save(used))
            self._saving.add(task)
            task.add_done_callback(self._saving.discard)

    async def _save(self, login: StoredLogin) -> None:
        """A use that cannot be stored ends the session earlier after the next start."""
        values = (clock.to_wire(login.used_at), login.id)
        try:
            db = await self._store.ensure_open()
            await db.write(
                lambda db: db.execute("UPDATE sessions SET used_at = ? WHERE id = ?", values)
            )
        except AdapterError as error:
            _log.warning("the use of a session was not stored", reason=error.message)

    def _key_digest(self, subject: Subject, key: str) -> bytes:
        bound = b"" if subject.user or subject.token_id else self._admin_sha256
        return hashlib.sha256(key.encode() + b"\0" + bound).digest()

    def _user_changed(self, name: str, ends_sessions: bool) -> None:
        """The store has removed them already."""
        if ends_sessions:
            self._logins = {
                key: one for key, one in self._logins.items() if one.subject.user != name
            }

    async def _load(self, db: Database) -> None:
        select = f"SELECT {_NAMES} FROM sessions"
        rows = await db.read(lambda db: list(each_row(db, select, (), _COLUMNS, key_columns=3)))
        logins = DamagedRows(FILE).readable_rows(rows, _parse_row)
        self._logins = {login.cookie_sha256: login for login in logins}


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _replace(db: apsw.Connection, login: StoredLogin, ended: Collection[StoredLogin]) -> None:
    db.executemany("DELETE FROM sessions WHERE id = ?", [(one.id,) for one in ended])
    values = (
        login.id,
        login.cookie_sha256,
        login.key_sha256,
        login.subject.user,
        login.subject.token_id,
        *map(clock.to_wire, (login.created_at, login.used_at, login.expires_at)),
    )
    db.execute(f"INSERT INTO sessions ({_NAMES}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


def _parse_row(row: tuple[Any, ...]) -> StoredLogin:
    id, cookie, key, user, token_id, *times = row
    try:
        created_at, used_at, expires_at = map(clock.from_wire, times)
    except (ValueError, TypeError):
        raise damaged_row(f"session {id}") from None
    if user is None or token_id is None:
        raise damaged_row(f"session {id}")
    return StoredLogin(
        id=id,
        cookie_sha256=cookie,
        key_sha256=key,
        subject=Subject(user=user, token_id=token_id),
        created_at=created_at,
        used_at=used_at,
        expires_at=expires_at,
        saved_at=used_at,
    )
