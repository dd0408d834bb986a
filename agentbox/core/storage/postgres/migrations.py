"""Numbered migrations of a schema, each applied once, with its number and SHA-256, by one process
at a time.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentbox.core.slot_errors import IntegrityError

if TYPE_CHECKING:
    from psycopg import AsyncConnection


@dataclass(frozen=True, slots=True)
class Migration:
    """`name` is `NNNN_what.sql`. Never edit a released one: add another."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


async def migrate(db: "AsyncConnection[Any]", schema: str, migrations: Sequence[Migration]) -> None:
    """Applies missing migrations. The caller's transaction is open, and its search path begins with
    the schema. Raises IntegrityError if the schema was created by a newer version, or if a
    migration has a different text.
    """
    namespace = await (await db.execute("SELECT to_regnamespace(%s)", (f'"{schema}"',))).fetchone()
    if namespace is None or namespace[0] is None:
        await db.execute(f'CREATE SCHEMA "{schema}"'.encode())
    await db.execute(
        "CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY, name text NOT NULL, "
        "sha256 text NOT NULL)"
    )
    applied = await (await db.execute("SELECT sha256 FROM migrations ORDER BY number")).fetchall()
    if len(applied) > len(migrations):
        raise _integrity_error(
            f"cannot open schema {schema}: its number {len(applied)} is newer than "
            f"{len(migrations)}, the newest that this version supports"
        )
    for number, (row, migration) in enumerate(zip(applied, migrations, strict=False), 1):
        if row[0] != migration.sha256:
            raise _integrity_error(
                f"cannot open schema {schema}: its migration {number} differs from that of this "
                "version"
            )
    for number, migration in enumerate(migrations[len(applied) :], len(applied) + 1):
        await db.execute(migration.text.encode())
        await db.execute(
            "INSERT INTO migrations VALUES (%s, %s, %s)", (number, migration.name, migration.sha256)
        )


def _integrity_error(message: str) -> IntegrityError:
    hint = "run the version that wrote it, or name another schema"
    return IntegrityError(message, hint=hint, segment=None, line=None, seq=None)
