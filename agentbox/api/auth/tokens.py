"""Named tokens of the API: created, looked up and revoked. Only the SHA-256 of a value is
stored.
"""

import hashlib
import re
import secrets
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import apsw

from agentbox.adapters.runtime.input_checks import check_range
from agentbox.api.auth.access_store import FILE, AccessStore
from agentbox.api.auth.authentication import Caller
from agentbox.api.auth.users import UserStore
from agentbox.contracts.roles import SCOPES_OF, Role, includes
from agentbox.contracts.tokens import (
    BOUND,
    GRANTABLE,
    MAX_RATE,
    MAX_TTL,
    NAME,
    CreatedToken,
    NewToken,
    Token,
)
from agentbox.contracts.users import user_principal
from agentbox.core import clock
from agentbox.core.ids import uuid7
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import NotFound, ValidationError
from agentbox.core.storage.damaged_rows import DamagedRows, damaged_row
from agentbox.core.storage.sqlite import Database
from agentbox.core.storage.sqlite_text import each_row

PREFIX = "abx_"  # recognizable for secret scanners
VALUE_BYTES = 32
_NAME, _BOUND = re.compile(NAME), re.compile(BOUND)
_COLUMNS = ("sha256", *(field.name for field in fields(Token)))
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM tokens"


def caller_of(token: Token) -> Caller:
    """The caller with this token. Two tokens of one name are one principal, so that a token can be
    renewed.
    """
    return Caller(
        f"urn:agentbox:token:{token.name}",
        frozenset(token.scopes),
        pod_prefix=token.pod_prefix,
        memory_prefix=token.memory_prefix,
        event_source=token.event_source,
        rate=token.rate,
        origin_box=token.origin_box,
        token_id=token.id,
    )


class TokenStore:
    """The tokens in `access.db`. Those of a user have at most the scopes of the user's role, and
    end with the user.
    """

    def __init__(self, store: AccessStore, users: UserStore) -> None:
        self._store, self._users = store, users
        self._tokens: dict[bytes, Token] = {}
        store.add(self._load)
        users.subscribe(self._user_changed)

    def find_caller(self, sha256: bytes) -> Caller | None:
        """The caller with the token of that hash; None when it is unknown, revoked, disabled or
        expired.
        """
        token = self._tokens.get(sha256)
        if token is None or token.disabled:
            return None
        if token.expires_at is not None and token.expires_at <= clock.now():
            return None
        if not token.user:
            return caller_of(token)
        role = self._users.role(token.user)
        return None if role is None else user_caller(token, role)

    def find_by_id(self, id: str) -> Caller | None:
        """As `find_caller`, by the id of the token."""
        sha256 = next((key for key, token in self._tokens.items() if token.id == id), b"")
        return self.find_caller(sha256)

    async def create(self, request: NewToken, created_by: str) -> CreatedToken:
        """A new token with its value. Raises ValidationError, BackendError."""
        _check_request(request)
        db, now = await self._store.ensure_open(), clock.now()
        value = PREFIX + secrets.token_urlsafe(VALUE_BYTES)
        token = Token(
            id=uuid7(),
            name=request.name,
            scopes=tuple(sorted(set(request.scopes))),
            created_by=created_by,
            created_at=now,
            expires_at=None if request.ttl_s is None else now + timedelta(seconds=request.ttl_s),
            pod_prefix=request.pod_prefix,
            memory_prefix=request.memory_prefix,
            event_source=request.event_source,
            rate=request.rate,
            origin_box=request.origin_box,
            disabled=False,
            user=request.user,
        )
        sha256 = hashlib.sha256(value.encode()).digest()
        async with self._users.unchanged(request.user) as role:
            if request.user:
                _check_role(request, role)
            await db.write(lambda db: _insert(db, token, sha256))
            self._tokens[sha256] = token
        return CreatedToken.from_wire({**token.to_wire(), "value": value})

    async def all(self) -> tuple[Token, ...]:
        """All tokens that were not revoked, including expired ones. Raises BackendError."""
        await self._store.open_existing()
        return tuple(sorted(self._tokens.values(), key=lambda token: token.id))

    async def enable(self, id: str) -> tuple[Token, bool]:
        """Lets a disabled token work again, by its id; returns it, and whether it was disabled.
        Raises NotFound, BackendError: it stays disabled.
        """
        sha256, token = await self._find(id, "enable")
        if not token.disabled:
            return token, False
        db = await self._store.ensure_open()
        await db.write(lambda db: db.execute("UPDATE tokens SET disabled = 0 WHERE id = ?", (id,)))
        if sha256 not in self._tokens:  # revoked meanwhile
            raise _unknown("enable", id)
        self._tokens[sha256] = enabled = replace(token, disabled=False)
        return enabled, True

    async def revoke(self, id: str) -> Token:
        """Revokes a token by its id, immediately also for concurrent calls. Raises NotFound."""
        sha256, token = await self._find(id, "revoke")
        del self._tokens[sha256]
        db = await self._store.ensure_open()
        await db.write(lambda db: db.execute("DELETE FROM tokens WHERE id = ?", (id,)))
        return token

    async def _find(self, id: str, doing: str) -> tuple[bytes, Token]:
        await self.all()
        for sha256, token in self._tokens.items():
            if token.id == id:
                return sha256, token
        raise _unknown(doing, id)

    async def _load(self, db: Database) -> None:
        rows = await db.read(lambda db: list(each_row(db, _SELECT, (), _COLUMNS, key_columns=2)))
        self._tokens = dict(DamagedRows(FILE).readable_rows(rows, _parse_row))

    def _user_changed(self, name: str, _ends_sessions: bool) -> None:
        """The store has removed the tokens of a disabled user already."""
        if self._users.role(name) is None:
            self._tokens = {key: one for key, one in self._tokens.items() if one.user != name}


def _unknown(doing: str, id: str) -> NotFound:
    return NotFound(f"cannot {doing} this token: unknown id", resource="token", id=id)


def user_caller(token: Token, role: Role) -> Caller:
    """The caller with this token of a user: the user, with the scopes that token and role share."""
    scopes = (scope for scope in token.scopes if includes(SCOPES_OF[role], scope))
    return replace(
        caller_of(token),
        principal=user_principal(token.user),
        scopes=frozenset(scopes),
        user=token.user,
        role=role,
    )


def _check_role(request: NewToken, role: Role | None) -> None:
    if role is None:
        raise invalid_value("/user", "must be the name of a user who is not disabled")
    for index, scope in enumerate(request.scopes):
        if not includes(SCOPES_OF[role], scope):
            raise invalid_value(f"/scopes/{index}", f"is not a scope of the role {role}")


def _parse_row(row: tuple[Any, ...]) -> tuple[bytes, Token]:
    wire = dict(zip(_COLUMNS, row, strict=True))
    sha256 = wire.pop("sha256")
    try:
        shown = {"scopes": str(wire["scopes"]).split(), "disabled": bool(wire["disabled"])}
        return sha256, Token.from_wire({**wire, **shown})
    except ValidationError:
        raise damaged_row(f"token {wire['id']}") from None


def _insert(db: apsw.Connection, token: Token, sha256: bytes) -> None:
    wire = {**token.to_wire(), "scopes": " ".join(token.scopes), "sha256": sha256}
    placeholders = ", ".join("?" * len(wire))
    db.execute(
        f"INSERT INTO tokens ({', '.join(wire)}) VALUES ({placeholders})", tuple(wire.values())
    )


def _check_request(request: NewToken) -> None:
    if not _NAME.fullmatch(request.name):
        raise invalid_value(
            "/name", "must be 1 to 64 of a-z 0-9 . _ - and start with a letter or digit"
        )
    if not request.scopes:
        raise invalid_value("/scopes", "must name at least one scope")
    for index, scope in enumerate(request.scopes):
        if scope not in GRANTABLE:
            raise invalid_value(
                f"/scopes/{index}", f"must be one of {', '.join(sorted(GRANTABLE))}"
            )
    if request.ttl_s is not None:
        check_range(request.ttl_s, "/ttl_s", (1, MAX_TTL))
    check_range(request.rate, "/rate", (0, MAX_RATE))
    for name in ("pod_prefix", "memory_prefix", "event_source", "origin_box"):
        if not _BOUND.fullmatch(getattr(request, name)):
            raise invalid_value(
                f"/{name}", "must be at most 256 printable ASCII characters without spaces"
            )
