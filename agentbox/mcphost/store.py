"""mcp.db: the text of pinned definitions, pins of first use, and events that the journal has not
taken yet.
"""

import json
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from agentbox.core import clock
from agentbox.core.ids import uuid7
from agentbox.core.storage.sqlite import Database

KEEP_EVENTS: Final = 100_000  # not read yet; beyond it the oldest are dropped
_COLUMNS: Final = ("seq", "id", "at", "type", "agent_id", "session_id", "trace_id", "data")
MIGRATIONS: Final = (
    """
    CREATE TABLE definitions (
        server TEXT NOT NULL, digest TEXT NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY (server, digest)
    ) STRICT;
    CREATE TABLE pins (
        server TEXT NOT NULL, tool TEXT NOT NULL, digest TEXT NOT NULL,
        PRIMARY KEY (server, tool)
    ) STRICT;
    CREATE TABLE record (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, at TEXT NOT NULL,
        type TEXT NOT NULL, agent_id TEXT NOT NULL, session_id TEXT NOT NULL,
        trace_id TEXT NOT NULL, data TEXT NOT NULL
    ) STRICT;
    """,
)


class NewLine(NamedTuple):
    """An event before it is stored; ids are "" where there are none."""

    type: str
    data: Mapping[str, Any]
    agent_id: str
    session_id: str
    trace_id: str


class McpStore:
    """Open it before use. Every write is on disk when its call returns. Definitions and pins are
    in memory too."""

    def __init__(self, directory: Path) -> None:
        self._database = Database(directory / "mcp.db", MIGRATIONS, "mcp", "mcp-host")
        self._definitions: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._pins: dict[tuple[str, str], str] = {}

    async def open(self) -> None:
        """Raises AdapterError for a damaged file."""
        await self._database.open()
        self._definitions = {
            (server, digest): json.loads(text)
            for server, digest, text in await self._rows("server, digest, text", "definitions")
        }
        self._pins = {
            (server, tool): digest
            for server, tool, digest in await self._rows("server, tool, digest", "pins")
        }

    async def close(self) -> None:
        await self._database.close()

    def definition(self, server: str, digest: str) -> Mapping[str, Any] | None:
        """The text of a definition; None if it was never seen."""
        return self._definitions.get((server, digest))

    def first_use(self, server: str) -> Mapping[str, str]:
        """The digests as they were first seen, by tool."""
        return {tool: digest for (name, tool), digest in self._pins.items() if name == server}

    async def keep(
        self, server: str, definitions: Mapping[str, Mapping[str, Any]], digests: Set[str]
    ) -> None:
        """Stores those of the definitions that are among the digests, which are all that is kept of
        that server."""
        known = {digest for name, digest in self._definitions if name == server}
        new = {
            digest: definition
            for digest, definition in definitions.items()
            if digest in digests and digest not in known
        }
        old = known - digests
        if not new and not old:
            return

        def job(db: apsw.Connection) -> None:
            for digest in old:
                db.execute(
                    "DELETE FROM definitions WHERE server = ? AND digest = ?", (server, digest)
                )
            for digest, definition in new.items():
                row = (server, digest, json.dumps(definition))
                db.execute("INSERT OR IGNORE INTO definitions VALUES (?, ?, ?)", row)

        await self._database.write(job)
        for digest in old:
            self._definitions.pop((server, digest), None)
        self._definitions |= {(server, digest): one for digest, one in new.items()}

    async def replace_pins(self, server: str, pins: Mapping[str, str]) -> None:
        """The pins of first use of a server, by tool."""

        def job(db: apsw.Connection) -> None:
            db.execute("DELETE FROM pins WHERE server = ?", (server,))
            for tool, digest in pins.items():
                db.execute("INSERT INTO pins VALUES (?, ?, ?)", (server, tool, digest))

        await self._database.write(job)
        kept = {key: digest for key, digest in self._pins.items() if key[0] != server}
        self._pins = {**kept, **{(server, tool): digest for tool, digest in pins.items()}}

    async def append(self, lines: Sequence[NewLine]) -> None:
        """Adds events to the record."""
        moment = clock.to_wire(clock.now())
        rows = [(uuid7(), moment, *line[:1], *line[2:], json.dumps(line.data)) for line in lines]

        def job(db: apsw.Connection) -> None:
            db.executemany(
                "INSERT INTO record (id, at, type, agent_id, session_id, trace_id, data) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            db.execute("DELETE FROM record WHERE seq <= ?", (db.last_insert_rowid() - KEEP_EVENTS,))

        await self._database.write(job)

    async def read_record(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Events after `after`; those up to it are dropped."""

        def job(db: apsw.Connection) -> list[tuple[Any, ...]]:
            db.execute("DELETE FROM record WHERE seq <= ?", (after,))
            return list(
                db.execute(
                    f"SELECT {', '.join(_COLUMNS)} FROM record ORDER BY seq LIMIT ?", (limit,)
                )
            )

        rows = await self._database.write(job)
        return [
            {**dict(zip(_COLUMNS, row, strict=True)), "data": json.loads(row[-1])} for row in rows
        ]

    async def _rows(self, columns: str, table: str) -> list[tuple[Any, ...]]:
        return await self._database.read(
            lambda db: list(db.execute(f"SELECT {columns} FROM {table} ORDER BY rowid"))
        )
