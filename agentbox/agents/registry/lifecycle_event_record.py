"""The record of agents.db: lifecycle events in their order, until the API has read them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw

from agentbox.core.ids import uuid7

KEEP_RECORD = (
    100_000  # events not read yet; beyond it the oldest denials are dropped, then the oldest events
)
PRUNE_EVERY = 1000  # events
COLUMNS: Final = ("seq", "id", "at", "type", "agent_id", "session_id", "trace_id", "data")
_INSERT: Final = (
    "INSERT INTO record (id, at, type, agent_id, data, session_id, trace_id) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_PRUNE: Final = """
    DELETE FROM record WHERE seq IN (
        SELECT seq FROM record ORDER BY type <> 'policy.denied', seq
        LIMIT max(0, (SELECT count(*) FROM record) - ?))
"""


@dataclass(frozen=True)
class LifecycleEvent:
    """One line of the record. `type` is an event type of the journal. An empty `session_id` or
    `trace_id` becomes the agent's."""

    type: str
    agent_id: str
    data: Mapping[str, Any]
    session_id: str = ""
    trace_id: str = ""


def append(db: apsw.Connection, events: Iterable[LifecycleEvent], moment: str) -> None:
    """Add the events in their order; drop the surplus now and then."""
    for event in events:
        values = (
            uuid7(),
            moment,
            event.type,
            event.agent_id,
            json.dumps(event.data),
            event.session_id,
            event.trace_id,
        )
        db.execute(_INSERT, values)
        if db.last_insert_rowid() % PRUNE_EVERY == 0:
            db.execute(_PRUNE, (KEEP_RECORD,))


def decode_line(row: tuple[Any, ...]) -> dict[str, Any]:
    """A row of COLUMNS. Raises ValueError or TypeError for a damaged one."""
    data = json.loads(row[-1])
    if not isinstance(data, dict):
        raise TypeError(type(data))
    return {**dict(zip(COLUMNS, row, strict=True)), "data": data}
