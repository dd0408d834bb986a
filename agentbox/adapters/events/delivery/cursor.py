"""`delivery.db`: the last record that the sink has, and the dead letters."""

from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from agentbox.contracts.events import DeadLetter, Event
from agentbox.core import clock
from agentbox.core.slot_errors import ValidationError
from agentbox.core.storage.damaged_rows import DamagedRows, damaged_row
from agentbox.core.storage.sqlite import Database, fetch_one
from agentbox.core.storage.sqlite_text import each_row

FILE = "delivery.db"
MIGRATIONS = (
    """
    CREATE TABLE cursor (one INTEGER PRIMARY KEY CHECK (one = 0), seq INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;
    CREATE TABLE dead (
        seq INTEGER NOT NULL, hash TEXT NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL, status INTEGER NOT NULL,
        reason TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (seq, hash)
    ) STRICT, WITHOUT ROWID;
    """,
)
_ADVANCE_SQL = "INSERT OR REPLACE INTO cursor VALUES (0, ?, ?)"
_DEAD_LETTER_COLUMNS = ("seq", "id", "type", "status", "reason", "at")
_NEWEST_SQL = f"SELECT {', '.join(_DEAD_LETTER_COLUMNS)} FROM dead ORDER BY seq DESC LIMIT ?"


class DeliveryCursor:
    """An open `delivery.db`. `seq` and `hash` belong to the last record that was accepted or
    rejected; -1 and "" before the first."""

    def __init__(self, directory: Path, impl: str) -> None:
        self._db = Database(directory / FILE, MIGRATIONS, "events", impl)
        self._damaged = DamagedRows(FILE)
        self.seq, self.hash = -1, ""
        self.dead_count = 0

    async def open(self) -> None:
        """Raises BackendError if the file is not a database or is from a newer release."""
        await self._db.open()
        position, count = await self._db.read(
            lambda db: (
                fetch_one(db, "SELECT seq, hash FROM cursor"),
                fetch_one(db, "SELECT count(*) FROM dead"),
            )
        )
        self.seq, self.hash = position or (-1, "")
        self.dead_count = 0 if count is None else int(count[0])

    async def close(self) -> None:
        """Idempotent."""
        await self._db.close()

    async def advance(self, seq: int, digest: str) -> None:
        """Set the last record that the sink has; durable on return."""
        await self._db.write(lambda db: db.execute(_ADVANCE_SQL, (seq, digest)))
        self.seq, self.hash = seq, digest

    async def dead_letter(self, event: Event, status: int, reason: str, now: datetime) -> None:
        """Store a dead letter for a permanently rejected record and move the cursor past it."""

        def job(db: apsw.Connection) -> None:
            values = (
                event.seq,
                event.hash,
                event.id,
                event.type,
                status,
                reason,
                clock.to_wire(now),
            )
            db.execute("INSERT OR REPLACE INTO dead VALUES (?, ?, ?, ?, ?, ?, ?)", values)
            db.execute(_ADVANCE_SQL, (event.seq, event.hash))

        await self._db.write(job)
        self.seq, self.hash, self.dead_count = event.seq, event.hash, self.dead_count + 1

    async def list_dead_letters(self, limit: int) -> tuple[DeadLetter, ...]:
        """Return the newest dead letters, newest first, without damaged ones."""
        records = await self._db.read(
            lambda db: list(
                each_row(db, _NEWEST_SQL, (limit,), _DEAD_LETTER_COLUMNS, key_columns=1)
            )
        )
        return self._damaged.readable_rows(records, _decode_dead_letter)

    def is_present(self) -> bool:
        """Return False if the open file is no longer the one at its path."""
        return self._db.is_present()


def _decode_dead_letter(record: tuple[Any, ...]) -> DeadLetter:
    try:
        return DeadLetter.from_wire(dict(zip(_DEAD_LETTER_COLUMNS, record, strict=True)))
    except ValidationError:
        raise damaged_row(f"dead letter {record[0]}") from None
