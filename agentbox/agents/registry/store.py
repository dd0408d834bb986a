"""agents.db: one row per agent, the requests of the last 24 hours, and the ordered event record."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw

from agentbox.agents.admission.draft import request_owner
from agentbox.agents.approvals.request import ApprovalRequest as Approval
from agentbox.agents.registry import lifecycle_event_record
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.lifecycle_event_record import LifecycleEvent
from agentbox.agents.states import state
from agentbox.agents.states.state import StoredState
from agentbox.contracts.orchestrator import AgentHandle
from agentbox.core import clock
from agentbox.core.slot_errors import BackendError, ValidationError
from agentbox.core.storage.damaged_rows import UNREADABLE, DamagedRows, damaged_row
from agentbox.core.storage.sqlite import Database
from agentbox.core.storage.sqlite_text import each_row
from agentbox.core.storage.store_record import StoreRecord

REQUEST_SECONDS = 24 * 3600

MIGRATIONS = (
    """
    CREATE TABLE agents (agent_id TEXT PRIMARY KEY, over INTEGER NOT NULL, row TEXT NOT NULL) STRICT;
    CREATE TABLE requests (
        principal TEXT NOT NULL, request_id TEXT NOT NULL, agent_id TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (principal, request_id)
    ) STRICT;
    CREATE TABLE record (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, at TEXT NOT NULL, type TEXT NOT NULL,
        agent_id TEXT NOT NULL, data TEXT NOT NULL
    ) STRICT;
    CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    """,
    "CREATE TABLE approvals (id TEXT PRIMARY KEY, asked REAL NOT NULL, row TEXT NOT NULL) STRICT;",
    state.TABLE,
    """
    ALTER TABLE record ADD COLUMN session_id TEXT NOT NULL DEFAULT '';
    ALTER TABLE record ADD COLUMN trace_id TEXT NOT NULL DEFAULT '';
    """,
)
T = TypeVar("T")
RequestKey = tuple[str, str]  # owner (`request_owner`), request id


class AgentStore:
    """Open it before use. Every write is on disk when its call returns."""

    def __init__(self, directory: Path, record: StoreRecord | None = None) -> None:
        """With a `record`, a database without its last recorded content is rejected."""
        self._path = directory / "agents.db"
        self.damaged = DamagedRows("agents.db")
        self._database = Database(
            self._path, MIGRATIONS, "orchestrator", "local-process", record=record
        )

    async def open(self) -> None:
        """Raises BackendError with instructions if the file is damaged; the file is not changed."""
        try:
            await self._database.open()
        except BackendError as error:
            if isinstance(error.__cause__, (apsw.CorruptError, apsw.NotADBError)):
                error.hint = self._remedy()
            raise

    async def close(self) -> None:
        await self._database.close()

    def is_present(self) -> bool:
        """False if the open file is no longer the one at its path."""
        return self._database.is_present()

    async def entries(self) -> list[AgentRecord]:
        """All stored agents, oldest first; damaged rows are reported and left in place."""
        return list(
            await self._read_rows("agent_id, row", "agents ORDER BY agent_id", (), _decode_entry)
        )

    def _remedy(self) -> str:
        return (
            f"Replace {self._path} by a good copy and delete its -wal and -shm files, "
            'or accept the loss: docs/howto/when-something-goes-wrong.md, "A store that vanished".'
        )

    async def requests(self) -> dict[RequestKey, tuple[AgentHandle, float]]:
        """Requests of the last 24 hours, each with its agent and time."""
        since = time.time() - REQUEST_SECONDS
        return dict(
            await self._read_rows(
                "agent_id, principal, request_id, at",
                "requests WHERE at > ?",
                (since,),
                _decode_request,
            )
        )

    async def admit(self, entry: AgentRecord, used_state: StoredState) -> None:
        """Store a new agent, its state and its request before its process exists."""
        moment, owner = time.time(), request_owner(entry.program, entry.principal)

        def job(db: apsw.Connection) -> None:
            _upsert_entry(db, entry)
            state.insert(db, used_state)
            db.execute("DELETE FROM requests WHERE at <= ?", (moment - REQUEST_SECONDS,))
            db.execute(
                "INSERT INTO requests VALUES (?, ?, ?, ?)",
                (owner, entry.request_id, entry.agent_id, moment),
            )

        await self._database.write(job)

    async def roll_back(self, entry: AgentRecord, *, with_state: bool) -> None:
        """Delete an agent that never ran, and its request; `with_state` also the state created for
        it."""

        def job(db: apsw.Connection) -> None:
            db.execute("DELETE FROM agents WHERE agent_id = ?", (entry.agent_id,))
            db.execute("DELETE FROM requests WHERE agent_id = ?", (entry.agent_id,))
            if with_state:
                db.execute(
                    "DELETE FROM states WHERE state_id = ? AND first = ?",
                    (entry.state_id, entry.agent_id),
                )

        await self._database.write(job)

    async def save(self, entries: Sequence[AgentRecord], *events: LifecycleEvent) -> None:
        """Store agents and events in one transaction."""
        rows, moment = [_encode_entry(entry) for entry in entries], clock.to_wire(clock.now())
        ended_states, now = [entry.state_id for entry in entries if entry.over], time.time()

        def job(db: apsw.Connection) -> None:
            for row in rows:
                db.execute("INSERT OR REPLACE INTO agents VALUES (?, ?, ?)", row)
            state.mark_used(db, ended_states, now)
            lifecycle_event_record.append(db, events, moment)

        await self._database.write(job)

    async def states(self, where: str, *values: Any) -> list[StoredState]:
        """Those that match a condition (`states.state.select`)."""
        rows = await self._database.read(lambda db: state.select(db, where, *values))
        return list(self.damaged.readable_rows(rows, state.decode_row))

    async def add_state(self, new_state: StoredState) -> None:
        """Add a state that no agent uses yet."""
        await self._database.write(lambda db: state.insert(db, new_state))

    async def detach_state(self, state_id: str) -> None:
        """Mark the state as removed."""
        await self._database.write(lambda db: state.detach(db, state_id))

    async def delete_state(self, state_id: str) -> None:
        """Delete the state after its data."""
        await self._database.write(lambda db: state.delete(db, state_id))

    async def approvals(self) -> list[Approval]:
        """All stored approvals, oldest first; damaged ones are reported and must be requested
        again."""
        return list(await self._read_rows("id, row", "approvals ORDER BY id", (), _decode_approval))

    async def save_approval(
        self, approval_id: str, requested_at: float, row: Mapping[str, Any]
    ) -> None:
        """Store an approval; drop those more than a day older."""
        values = (approval_id, requested_at, json.dumps(row))

        def job(db: apsw.Connection) -> None:
            db.execute("INSERT OR REPLACE INTO approvals VALUES (?, ?, ?)", values)
            db.execute("DELETE FROM approvals WHERE asked < ?", (requested_at - 24 * 3600,))

        await self._database.write(job)

    async def delete_agents(self, agent_ids: Sequence[str]) -> None:
        """Delete agents that have ended."""
        await self._database.write(
            _execute_each(
                "DELETE FROM agents WHERE agent_id = ?", [(agent_id,) for agent_id in agent_ids]
            )
        )

    async def read_record(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Lines of the record after `after`, in order; damaged ones are reported and left in
        place."""
        lines: tuple[dict[str, Any], ...] = ()
        while not lines:
            source, values = "record WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
            last = await self._fetch(f"SELECT max(seq) FROM (SELECT seq FROM {source})", *values)
            if last == [(None,)]:
                break
            lines = await self._read_rows(
                ", ".join(lifecycle_event_record.COLUMNS),
                source,
                values,
                lifecycle_event_record.decode_line,
            )
            after = last[0][0]
        return list(lines)

    async def discard_record(self, through: int) -> None:
        """Delete the lines that the reader has stored."""
        await self._database.write(
            _execute_each("DELETE FROM record WHERE seq <= ? AND json_valid(data)", [(through,)])
        )

    async def fact(self, name: str, value: str | None = None) -> str | None:
        """Return the value stored under that name; with `value`, store it and return the previous
        one."""
        rows = await self._fetch("SELECT value FROM facts WHERE name = ?", name)
        if value is not None:
            await self._database.write(
                _execute_each("INSERT OR REPLACE INTO facts VALUES (?, ?)", [(name, value)])
            )
        return str(rows[0][0]) if rows else None

    async def _read_rows(
        self,
        columns: str,
        source: str,
        values: tuple[Any, ...],
        read: Callable[[tuple[Any, ...]], T],
    ) -> tuple[T, ...]:
        """Rows of a query; the first column identifies a row."""
        query, names = f"SELECT {columns} FROM {source}", columns.split(", ")
        rows = await self._database.read(
            lambda db: list(each_row(db, query, values, names, key_columns=1))
        )
        return self.damaged.readable_rows(rows, partial(_decode, read, source.partition(" ")[0]))

    async def _fetch(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        return await self._database.read(lambda db: list(db.execute(text, values)))


def _decode(read: Callable[[tuple[Any, ...]], T], table: str, row: tuple[Any, ...]) -> T:
    try:
        return read(row)
    except (*UNREADABLE, AttributeError, ValidationError):
        raise damaged_row(f"{row[0]} of {table}") from None


def _decode_entry(row: tuple[Any, ...]) -> AgentRecord:
    return AgentRecord.from_row(json.loads(row[1]))


def _decode_request(row: tuple[Any, ...]) -> tuple[RequestKey, tuple[AgentHandle, float]]:
    agent_id, principal, request_id, created_at = row
    if principal is None or request_id is None:
        raise ValueError(agent_id)
    return (principal, request_id), (AgentHandle(agent_id=agent_id, generation=1), created_at)


def _decode_approval(row: tuple[Any, ...]) -> Approval:
    return Approval.from_row(json.loads(row[1]))


def _encode_entry(entry: AgentRecord) -> tuple[str, int, str]:
    return entry.agent_id, int(entry.over), json.dumps(entry.to_row())


def _upsert_entry(db: apsw.Connection, entry: AgentRecord) -> None:
    db.execute("INSERT OR REPLACE INTO agents VALUES (?, ?, ?)", _encode_entry(entry))


def _execute_each(text: str, rows: Sequence[tuple[Any, ...]]) -> Callable[[apsw.Connection], None]:
    def job(db: apsw.Connection) -> None:
        for values in rows:
            db.execute(text, values)

    return job
