"""Detects a replaced or outdated database. The table `store` has an id, created with the database,
and a counter that grows each time the record is written; the record has the last values of both.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apsw

from agentbox.core.ids import uuid7
from agentbox.core.storage.store_record import StoreRecord

_TABLE = """
    CREATE TABLE IF NOT EXISTS store (
        one INTEGER PRIMARY KEY CHECK (one = 0), id TEXT NOT NULL, mark INTEGER NOT NULL
    ) STRICT
"""


def check_present(path: Path, record: StoreRecord) -> Mapping[str, Any] | None:
    """Reads the record. Raises IntegrityError if it names a store that does not exist; nothing is
    created then.
    """
    recorded = record.read("id", "mark")
    if recorded is not None and not path.exists():
        raise record.loss_error(path.name, "it is missing")
    if recorded is not None and path.stat().st_size == 0:
        raise record.loss_error(path.name, "it is empty, but was not before")
    return recorded


def check_complete(
    connection: apsw.Connection, name: str, record: StoreRecord, recorded: Mapping[str, Any] | None
) -> None:
    """Raises IntegrityError if this is a different database, or an older copy, than the record
    says.
    """
    if recorded is None:
        return
    has_table = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'store'").fetchall()
    stored = connection.execute("SELECT id, mark FROM store").fetchall() if has_table else []
    if not stored or stored[0][0] != recorded["id"]:
        raise record.loss_error(name, "it is a different database")
    if int(str(stored[0][1])) < recorded["mark"]:
        raise record.loss_error(name, "it lacks the latest writes, as an older copy does")


def identify(connection: apsw.Connection) -> tuple[str, int]:
    """Assigns the database its id, once, and counts this opening."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(_TABLE)
        connection.execute("INSERT OR IGNORE INTO store VALUES (0, ?, 0)", (uuid7(),))
        identity = advance(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return identity


def advance(connection: apsw.Connection) -> tuple[str, int]:
    """The id and the next counter value, in the caller's transaction."""
    ((store_id, mark),) = connection.execute(
        "UPDATE store SET mark = mark + 1 RETURNING id, mark"
    ).fetchall()
    return str(store_id), int(str(mark))
