"""Databases as they are on disk: each SQLite store is opened by its own class in a temporary
directory, and read back.

PostgreSQL is read from the text of its migrations: a server is not always there. The checksum of
each migration is stored in the database and compared when it opens, so a blank more is a change.
"""

import asyncio
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import apsw

from frozen import examples, sources

_TABLE: Final = re.compile(r"CREATE TABLE (\w+) \((.*?)\);", re.DOTALL)
_ADDED: Final = re.compile(r"ALTER TABLE (\w+) ADD COLUMN (\w+) ([^;]*);")
_INDEX: Final = re.compile(r"CREATE (?:UNIQUE )?INDEX (\w+) ON (\w+)")
_COMMA: Final = re.compile(r",(?![^(]*\))")
_CONSTRAINTS: Final = frozenset({"PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT"})


def sqlite() -> dict[str, str]:
    """`<file> <table>.<column>` -> type and constraints, of every store; indexes and checksums of
    migrations too."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(examples.make_stores(Path(folder)))
        for path in sorted(Path(folder).rglob("*.db")):
            found.update(
                {f"{path.relative_to(folder)} {name}": text for name, text in _schema(path)}
            )
    return found


def postgres() -> dict[str, str]:
    """The same of the two schemas of PostgreSQL."""
    found: dict[str, str] = {}
    for schema, migrations in sources.POSTGRES.items():
        found.update({f"postgres:{schema} {name}": text for name, text in _migrated(migrations)})
    return found


def _schema(path: Path) -> Iterator[tuple[str, str]]:
    database = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        for table in _tables(database):
            for _, column, what, required, default, key, *_ in _rows(
                database, f"PRAGMA table_xinfo({table})"
            ):
                yield f"{table}.{column}", _column(what, required, default, key)
            for _, index, _, origin, _ in _rows(database, f"PRAGMA index_list({table})"):
                if origin == "c":  # of a statement of its own
                    columns = (
                        str(row[2]) for row in _rows(database, f"PRAGMA index_info({index})")
                    )
                    yield f"{table} index {index}", ", ".join(columns)
        for number, checksum in _rows(database, "SELECT number, sha256 FROM migrations"):
            yield f"migration {number}", f"sha256:{checksum}"
    finally:
        database.close()


def _tables(database: apsw.Connection) -> list[str]:
    """Those that the store made; not those that SQLite keeps behind a virtual one."""
    found = _rows(database, "SELECT name, type FROM pragma_table_list WHERE schema = 'main'")
    return sorted(
        name
        for name, kind in found
        if kind in ("table", "virtual") and not name.startswith("sqlite_")
    )


def _rows(database: apsw.Connection, query: str) -> list[Sequence[Any]]:
    return list(database.execute(query))


def _column(what: str, required: int, default: str | None, key: int) -> str:
    parts = (
        what or "any",
        "not null" if required else "",
        f"default {default}" if default is not None else "",
        f"key {key}" if key else "",
    )
    return " ".join(part for part in parts if part)


def _migrated(migrations: Sequence[Any]) -> Iterator[tuple[str, str]]:
    for number, migration in enumerate(migrations, 1):
        text = migration.text
        yield f"migration {number} {migration.name}", f"sha256:{migration.sha256}"
        for table, body in _TABLE.findall(text):
            yield from _columns(table, body)
        for table, column, rest in _ADDED.findall(text):
            yield f"{table}.{column}", " ".join(rest.split())
        for index, table in _INDEX.findall(text):
            yield f"{table} index {index}", ""


def _columns(table: str, body: str) -> Iterator[tuple[str, str]]:
    for row in _COMMA.split(body):
        name, _, rest = " ".join(row.split()).partition(" ")
        if name not in _CONSTRAINTS:
            yield f"{table}.{name}", rest
