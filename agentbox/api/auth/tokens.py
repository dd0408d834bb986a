"""Named tokens of the API: created, looked up and revoked. Only the SHA-256 of a value is
stored.
"""

import asyncio
import hashlib
import re
import secrets
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import apsw
import structlog

from agentbox.adapters.runtime.input_checks import check_range
from agentbox.api.auth.authentication import Caller
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
from agentbox.core import clock
from agentbox.core.ids import uuid7
from agentbox.core.paths import Paths
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import AdapterError, NotFound, ValidationError
from agentbox.core.storage.damaged_rows import DamagedRows, damaged_row
from agentbox.core.storage.sqlite import Database
from agentbox.core.storage.sqlite_text import each_row

FILE = "access.db"
PREFIX = "abx_"  # recognizable for secret scanners
VALUE_BYTES = 32
MIGRATIONS = (
    """
    CREATE TABLE tokens (
        id TEXT PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, name TEXT NOT NULL, scopes TEXT NOT NULL, created_by TEXT NOT NULL,
        created_at TEXT NOT NULL, expires_at TEXT, pod_prefix TEXT NOT NULL, memory_prefix TEXT NOT NULL,
        event_source TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    "ALTER TABLE tokens ADD COLUMN rate INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE tokens ADD COLUMN origin_box TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE tokens ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0",
)
_NAME, _BOUND = re.compile(NAME), re.compile(BOUND)
_COLUMNS = ("sha256", *(field.name for field in fields(Token)))
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM tokens"
_log = structlog.get_logger()


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
    """The store, `access.db`; opened when it exists, or when the first token is created."""

    def __init__(self, paths: Paths) -> None:
        self._path = paths.state_secrets / FILE
        self._db = Database(self._path, MIGRATIONS, "tokens", "sqlite")
        self._tokens: dict[bytes, Token] = {}
        self._open_lock = asyncio.Lock()
        self._open = False

    async def open(self) -> None:
        """Reads the store. An unreadable row is logged and skipped; without a readable store no
        token is known or created.
        """
        if not self._path.exists():
            return
        try:
            await self._ensure_open()
        except AdapterError as error:
            _log.error("named tokens cannot be read", reason=error.message)

    async def close(self) -> None:
        """Stops its threads."""
        self._open = False
        await self._db.close()

    def find_caller(self, sha256: bytes) -> Caller | None:
        """The caller with the token of that hash; None when it is unknown, revoked, disabled or
        expired.
        """
        token = self._tokens.get(sha256)
        if token is None or token.disabled:
            return None
        if token.expires_at is not None and token.expires_at <= clock.now():
            return None
        return caller_of(token)

    async def create(self, request: NewToken, created_by: str) -> CreatedToken:
        """A new token with its value. Raises ValidationError, BackendError."""
        _check_request(request)
        db, now, value = (
            await self._ensure_open(),
            clock.now(),
            PREFIX + secrets.token_urlsafe(VALUE_BYTES),
        )
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
        )
        sha256 = hashlib.sha256(value.encode()).digest()
        await db.write(lambda db: _insert(db, token, sha256))
        self._tokens[sha256] = token
        return CreatedToken.from_wire({**token.to_wire(), "value": value})

    async def all(self) -> tuple[Token, ...]:
        """All tokens that were not revoked, including expired ones. Raises BackendError."""
        if self._path.exists():
            await self._ensure_open()
        return tuple(sorted(self._tokens.values(), key=lambda token: token.id))

    async def enable(self, id: str) -> tuple[Token, bool]:
        """Lets a disabled token work again, by its id; returns it, and whether it was disabled.
        Raises NotFound, BackendError: it stays disabled.
        """
        sha256, token = await self._find(id, "enable")
        if not token.disabled:
            return token, False
        db = await self._ensure_open()
        await db.write(lambda db: db.execute("UPDATE tokens SET disabled = 0 WHERE id = ?", (id,)))
        if sha256 not in self._tokens:  # revoked meanwhile
            raise _unknown("enable", id)
        self._tokens[sha256] = enabled = replace(token, disabled=False)
        return enabled, True

    async def revoke(self, id: str) -> Token:
        """Revokes a token by its id, immediately also for concurrent calls. Raises NotFound."""
        sha256, token = await self._find(id, "revoke")
        del self._tokens[sha256]
        db = await self._ensure_open()
        await db.write(lambda db: db.execute("DELETE FROM tokens WHERE id = ?", (id,)))
        return token

    async def _find(self, id: str, doing: str) -> tuple[bytes, Token]:
        await self.all()
        for sha256, token in self._tokens.items():
            if token.id == id:
                return sha256, token
        raise _unknown(doing, id)

    async def _ensure_open(self) -> Database:
        async with self._open_lock:
            if not self._open:
                await self._db.open()
                rows = await self._db.read(
                    lambda db: list(each_row(db, _SELECT, (), _COLUMNS, key_columns=2))
                )
                self._tokens = dict(DamagedRows(FILE).readable_rows(rows, _parse_row))
                self._open = True
        return self._db


def _unknown(doing: str, id: str) -> NotFound:
    return NotFound(f"cannot {doing} this token: unknown id", resource="token", id=id)


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
