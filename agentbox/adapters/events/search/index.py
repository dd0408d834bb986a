"""The index: which records have which words, and what searches filter by."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from agentbox.adapters.events.search.query import find_seqs, milliseconds
from agentbox.adapters.events.search.schema import MIGRATIONS
from agentbox.contracts.event_search import EventSearch
from agentbox.contracts.events import GENESIS, Event
from agentbox.core.background.threads import run_in_thread
from agentbox.core.slot_errors import BackendError, IntegrityError
from agentbox.core.storage.sqlite import Database, fetch_all, fetch_one

EMPTY = (-1, GENESIS)
_SUFFIXES = ("", "-wal", "-shm")


class EventIndex:
    """`search.db`. Raises AdapterError: SlotUnavailable while it is not open. `is_damaged` after an
    error that a new file cures."""

    def __init__(self, path: Path) -> None:
        self.is_damaged = False
        self._path = path
        self._db = Database(path, MIGRATIONS, "events", "search")

    async def open(self) -> None:
        with self._noting_damage():
            await self._db.open()

    async def close(self) -> None:
        await self._db.close()

    async def remove(self) -> None:
        """Removes the file of a closed index; the next `open` makes an empty one."""
        await run_in_thread(self._remove)
        self.is_damaged = False

    async def position(self) -> tuple[int, str]:
        """Number and hash of the last indexed record; (-1, 64 zeros) for none."""
        with self._noting_damage():
            row = await self._db.read(lambda db: fetch_one(db, "SELECT seq, hash FROM position"))
        return EMPTY if row is None else (row[0], row[1])

    async def add(self, events: Sequence[Event]) -> None:
        """Indexes records that follow the last indexed one."""
        if not events:
            return
        rows = [
            (e.seq, milliseconds(e.ts), e.type, e.agent_id, e.session_id, e.trace_id)
            for e in events
        ]
        texts = [(e.seq, " ".join(_texts(e))) for e in events]
        last = (events[-1].seq, events[-1].hash)

        def job(db: apsw.Connection) -> None:
            db.executemany("INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
            db.executemany("INSERT OR REPLACE INTO words (rowid, text) VALUES (?, ?)", texts)
            db.execute("INSERT OR REPLACE INTO position VALUES (0, ?, ?)", last)

        with self._noting_damage():
            await self._db.write(job)

    async def forget_before(self, seq: int) -> None:
        """Removes records that the journal no longer has."""

        def job(db: apsw.Connection) -> None:
            db.execute("DELETE FROM words WHERE rowid < ?", (seq,))
            db.execute("DELETE FROM events WHERE seq < ?", (seq,))

        with self._noting_damage():
            await self._db.write(job)

    async def find(self, search: EventSearch, before: int, limit: int) -> list[int]:
        """Numbers of matching records below `before`, newest first."""
        return await self._db.read(lambda db: find_seqs(db, search, before, limit))

    async def counts(self) -> Mapping[str, int]:
        """How many records of each type are indexed, in order of the types."""
        query = "SELECT type, count(*) FROM events GROUP BY type ORDER BY type"
        rows = await self._db.read(lambda db: fetch_all(db, query))
        return {row[0]: row[1] for row in rows}

    @contextmanager
    def _noting_damage(self) -> Iterator[None]:
        try:
            yield
        except (BackendError, IntegrityError):
            self.is_damaged = True
            raise

    def _remove(self) -> None:
        for suffix in _SUFFIXES:
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _texts(event: Event) -> Iterator[str]:
    """What a search finds: type, names, and each key and text of the data."""
    yield event.type
    yield event.source
    yield from filter(None, (event.subject, event.agent_id, event.session_id))
    pending: list[Any] = [event.data]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            pending += (*value.keys(), *value.values())
        elif isinstance(value, (list, tuple)):
            pending += value
        elif isinstance(value, str):
            yield value.encode("utf-8", "replace").decode()
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield str(value)
