"""One state, and its row in agents.db."""

from collections.abc import Iterable
from dataclasses import astuple, fields
from typing import Any, Final

import apsw

from agentbox.core.frozen import frozen
from agentbox.core.storage.damaged_rows import damaged_row
from agentbox.core.storage.sqlite_text import each_row

OPERATOR: Final = "urn:agentbox:operator"
SHARED_PREFIX: Final = "agents."
"""Prefix of the name of the state shared by the runs of a table of [agents]. No other name has a
dot."""
TABLE: Final = """
    CREATE TABLE states (
        state_id TEXT PRIMARY KEY, name TEXT UNIQUE, owner TEXT NOT NULL, label TEXT NOT NULL, first TEXT NOT NULL,
        created REAL NOT NULL, used REAL NOT NULL, removed INTEGER NOT NULL, source TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX states_used ON states (used);
    INSERT INTO states SELECT agent_id, NULL, json_extract(row, '$.principal'), json_extract(row, '$.spec.name'), agent_id,
        CAST(json_extract(row, '$.created') AS REAL), CAST(json_extract(row, '$.created') AS REAL), 0, '' FROM agents;
"""


@frozen
class StoredState:
    """`name` None: the state of one run. `owner` is the principal that created it, `label` the name
    of its first run, `first` the id of that agent. `used`: when one of its runs was last admitted
    or ended. Times in Unix seconds. `removed`: detached, its data is being removed. `source`: what
    was adopted into it."""

    state_id: str
    name: str | None
    owner: str
    label: str
    first: str
    created: float
    used: float
    removed: bool = False
    source: str = ""


_COLUMNS: Final = ", ".join(field.name for field in fields(StoredState))
_PLACEHOLDERS: Final = ", ".join("?" * len(fields(StoredState)))


def insert(db: apsw.Connection, state: StoredState) -> None:
    """Store a new state, or update the time of use of an existing one."""
    db.execute(
        f"INSERT INTO states VALUES ({_PLACEHOLDERS}) "
        "ON CONFLICT (state_id) DO UPDATE SET used = excluded.used",
        _encode_row(state),
    )


def mark_used(db: apsw.Connection, state_ids: Iterable[str], moment: float) -> None:
    """Update the time of use after runs have ended."""
    for state_id in state_ids:
        db.execute("UPDATE states SET used = ? WHERE state_id = ?", (moment, state_id))


def detach(db: apsw.Connection, state_id: str) -> None:
    """Free its name and mark it as removed."""
    db.execute("UPDATE states SET name = NULL, removed = 1 WHERE state_id = ?", (state_id,))


def delete(db: apsw.Connection, state_id: str) -> None:
    """Delete the row."""
    db.execute("DELETE FROM states WHERE state_id = ?", (state_id,))


def select(db: apsw.Connection, where: str, *values: Any) -> list[tuple[Any, ...]]:
    """Rows for `decode_row` that match; `where` may order and limit them."""
    names = [field.name for field in fields(StoredState)]
    return list(
        each_row(db, f"SELECT {_COLUMNS} FROM states WHERE {where}", values, names, key_columns=1)
    )


def _encode_row(state: StoredState) -> tuple[Any, ...]:
    return tuple(int(value) if isinstance(value, bool) else value for value in astuple(state))


def decode_row(row: tuple[Any, ...]) -> StoredState:
    """Raises IntegrityError for a row without a state."""
    values = dict(zip((field.name for field in fields(StoredState)), row, strict=True))
    if None in (values["owner"], values["label"], values["first"], values["source"]):
        raise damaged_row(f"state {row[0]}")
    return StoredState(**{**values, "removed": bool(values["removed"])})
