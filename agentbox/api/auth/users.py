"""The users of the box. A user is never removed: the name stays reserved."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from typing import Any

import apsw

from agentbox.api.auth.access_store import FILE, AccessStore
from agentbox.contracts.roles import ROLES, SCOPES_OF, Role, includes
from agentbox.contracts.tokens import NAME
from agentbox.contracts.users import MAX_USERS, OPERATOR, NewUser, User
from agentbox.core import clock
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import (
    LastAdmin,
    NameTaken,
    NotFound,
    QuotaExceeded,
    ValidationError,
)
from agentbox.core.storage.damaged_rows import DamagedRows, damaged_row
from agentbox.core.storage.sqlite import Database
from agentbox.core.storage.sqlite_text import each_row

Check = Callable[[User], None]
_NAME = re.compile(NAME)
_COLUMNS = tuple(field.name for field in fields(User))
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM users"
_INSERT = f"INSERT INTO users ({', '.join(_COLUMNS)}) VALUES (?, ?, ?, ?, ?)"


class UserStore:
    """The users in `access.db`. Changes run one after the other."""

    def __init__(self, store: AccessStore) -> None:
        self._store = store
        self._users: dict[str, User] = {}
        self._changing = asyncio.Lock()
        self._subscribers: list[Callable[[str, bool], None]] = []
        store.add(self._load)

    def subscribe(self, changed: Callable[[str, bool], None]) -> None:
        """Calls `changed` with the name of each user whose role or state has changed, at once, and
        whether the sessions of the user have ended.
        """
        self._subscribers.append(changed)

    def role(self, name: str) -> Role | None:
        """The role of a user; None for an unknown or disabled one."""
        user = self._users.get(name)
        return None if user is None or user.disabled_at is not None else user.role

    async def all(self) -> tuple[User, ...]:
        """All users by name, disabled ones included. Raises BackendError."""
        await self._store.open_existing()
        return tuple(sorted(self._users.values(), key=lambda user: user.name))

    async def get(self, name: str) -> User:
        """Raises NotFound, BackendError."""
        await self._store.open_existing()
        if (user := self._users.get(name)) is None:
            raise NotFound("cannot find this user", resource="user", id=name[:64])
        return user

    @asynccontextmanager
    async def unchanged(self, name: str) -> AsyncIterator[Role | None]:
        """The role of a user, who does not change meanwhile."""
        async with self._changing:
            yield self.role(name)

    async def add(self, request: NewUser, created_by: str) -> User:
        """Raises ValidationError, NameTaken, QuotaExceeded, BackendError."""
        if not _NAME.fullmatch(request.name):
            raise invalid_value(
                "/name", "must be 1 to 64 of a-z 0-9 . _ - and start with a letter or digit"
            )
        _check_role(request.role)
        db = await self._store.ensure_open()
        async with self._changing:
            if request.name in self._users or request.name == OPERATOR:
                raise NameTaken(
                    f"cannot add {request.name}: the name is or was that of another person",
                    name=request.name,
                )
            if len(self._users) >= MAX_USERS:
                raise QuotaExceeded(
                    f"cannot add {request.name}: the maximum is {MAX_USERS} users, disabled ones "
                    "included",
                    limit="users",
                    observed=len(self._users),
                    cap=MAX_USERS,
                    config_path="",
                )
            user = User(
                name=request.name,
                role=request.role,
                created_by=created_by,
                created_at=clock.now(),
                disabled_at=None,
            )
            await db.write(lambda db: _insert(db, user))
            self._users[user.name] = user
        return user

    async def set_role(self, name: str, role: Role, check: Check) -> User:
        """A role with more scopes ends the sessions of the user: whoever had got one in that name
        would have the new scopes. `check` gets the user before the change, and raises what forbids
        it. Raises ValidationError, NotFound, LastAdmin, BackendError.
        """
        _check_role(role)
        return await self._change(name, check, role=role)

    async def disable(self, name: str, check: Check) -> User:
        """Also removes the tokens and sessions of the user. Raises NotFound, LastAdmin,
        BackendError.
        """
        return await self._change(name, check, disabled_at=clock.now())

    async def enable(self, name: str, check: Check) -> User:
        """Raises NotFound, BackendError."""
        return await self._change(name, check, disabled_at=None)

    async def _change(self, name: str, check: Check, **changes: Any) -> User:
        db = await self._store.ensure_open()
        async with self._changing:
            before = await self.get(name)
            check(before)
            user = replace(before, **changes)
            if before.disabled_at is not None and user.disabled_at is not None:
                user = replace(user, disabled_at=before.disabled_at)  # the first time counts
            if _is_admin(before) and not _is_admin(user) and self._admins() == 1:
                raise LastAdmin(
                    f"cannot change {name}: no other user is an admin",
                    hint="Make another user an admin first.",
                    name=name,
                )
            ends = user.disabled_at is not None or _is_wider(user.role, before.role)
            await db.write(lambda db: _update(db, user, ends))
            self._users[name] = user
            for changed in self._subscribers:
                changed(name, ends)
        return user

    def _admins(self) -> int:
        return sum(_is_admin(user) for user in self._users.values())

    async def _load(self, db: Database) -> None:
        rows = await db.read(lambda db: list(each_row(db, _SELECT, (), _COLUMNS, key_columns=1)))
        users = DamagedRows(FILE).readable_rows(rows, _parse_row)
        self._users = {user.name: user for user in users}


def _is_admin(user: User) -> bool:
    return user.role == "admin" and user.disabled_at is None


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise invalid_value("/role", f"must be one of {', '.join(ROLES)}")


def _insert(db: apsw.Connection, user: User) -> None:
    wire = user.to_wire()
    db.execute(_INSERT, tuple(wire[name] for name in _COLUMNS))


def _is_wider(role: Role, other: Role) -> bool:
    return any(not includes(SCOPES_OF[other], scope) for scope in SCOPES_OF[role])


def _update(db: apsw.Connection, user: User, ends_sessions: bool) -> None:
    db.execute(
        "UPDATE users SET role = ?, disabled_at = ? WHERE name = ?",
        (user.role, user.to_wire()["disabled_at"], user.name),
    )
    if user.disabled_at is not None:
        db.execute("DELETE FROM tokens WHERE user = ?", (user.name,))
    if ends_sessions:
        db.execute("DELETE FROM sessions WHERE user = ?", (user.name,))


def _parse_row(row: tuple[Any, ...]) -> User:
    wire = dict(zip(_COLUMNS, row, strict=True))
    try:
        return User.from_wire(wire)
    except ValidationError:
        raise damaged_row(f"user {wire['name']}") from None
