"""Numbered migrations of a SQLite store, each applied once, in one transaction with its number and
SHA-256.
"""

import hashlib
from collections.abc import Sequence

import apsw

from agentbox.core.slot_errors import IntegrityError


def migrate(connection: apsw.Connection, name: str, migrations: Sequence[str]) -> None:
    """Applies missing migrations, each in one transaction with its number and SHA-256. Raises
    IntegrityError if the store was created by a newer version, or if a migration has a different
    text.
    """
    applied = _applied(connection)
    if len(applied) > len(migrations):
        raise _integrity_error(
            f"cannot open {name}: its schema {len(applied)} is newer than {len(migrations)}, the "
            "newest that this version supports"
        )
    for number, (stored, text) in enumerate(zip(applied, migrations, strict=False), 1):
        if stored != _checksum(text):
            raise _integrity_error(
                f"cannot open {name}: its migration {number} differs from that of this version"
            )
    connection.execute("PRAGMA journal_mode = WAL")
    for number, text in enumerate(migrations[len(applied) :], len(applied) + 1):
        _apply(connection, number, text)


def _apply(connection: apsw.Connection, number: int, text: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if len(_applied(connection)) < number:  # another process may have been faster
            connection.execute(
                "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, sha256 TEXT "
                "NOT NULL) STRICT"
            )
            connection.execute(text)
            connection.execute("INSERT INTO migrations VALUES (?, ?)", (number, _checksum(text)))
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _applied(connection: apsw.Connection) -> list[str]:
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'migrations'").fetchall():
        return []
    return [row[0] for row in connection.execute("SELECT sha256 FROM migrations ORDER BY number")]


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _integrity_error(message: str) -> IntegrityError:
    return IntegrityError(
        message,
        hint="run the version that wrote it, or start with an empty directory",
        segment=None,
        line=None,
        seq=None,
    )
