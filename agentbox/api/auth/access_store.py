"""The store of who may use the API, `access.db`: named tokens, users, sessions."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.sqlite import Database

FILE = "access.db"
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
    "ALTER TABLE tokens ADD COLUMN user TEXT NOT NULL DEFAULT ''",
    """
    CREATE TABLE users (
        name TEXT PRIMARY KEY, role TEXT NOT NULL, created_by TEXT NOT NULL,
        created_at TEXT NOT NULL, disabled_at TEXT
    ) STRICT, WITHOUT ROWID;
    """,
    """
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, cookie_sha256 BLOB NOT NULL UNIQUE, key_sha256 BLOB NOT NULL,
        user TEXT NOT NULL, token_id TEXT NOT NULL, created_at TEXT NOT NULL,
        used_at TEXT NOT NULL, expires_at TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
)
_log = structlog.get_logger()
Load = Callable[[Database], Awaitable[None]]


class AccessStore:
    """Opened when it exists, or before the first write. `load` of each part runs then."""

    def __init__(self, paths: Paths) -> None:
        self._path = paths.state_secrets / FILE
        self._db = Database(self._path, MIGRATIONS, "access", "sqlite")
        self._loads: list[Load] = []
        self._open_lock = asyncio.Lock()
        self._open = False

    def add(self, load: Load) -> None:
        """Adds a part, before the store is opened."""
        self._loads.append(load)

    async def open(self) -> None:
        """Reads the store. Without a readable one no token, user or session is known or made."""
        try:
            await self.open_existing()
        except AdapterError as error:
            _log.error("tokens, users and sessions cannot be read", reason=error.message)

    async def open_existing(self) -> None:
        """Does nothing without a store. Raises BackendError."""
        if self._path.exists():
            await self.ensure_open()

    async def ensure_open(self) -> Database:
        """Makes the store if there is none. Raises BackendError."""
        async with self._open_lock:
            if not self._open:
                await self._db.open()
                for load in self._loads:
                    await load(self._db)
                self._open = True
        return self._db

    async def close(self) -> None:
        """Stops its threads."""
        self._open = False
        await self._db.close()
