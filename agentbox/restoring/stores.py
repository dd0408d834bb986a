"""Checks, migrates and counts the SQLite stores of a restored state."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import apsw

from agentbox.api.known_stores import STORES, Store
from agentbox.api.stores import rows_of
from agentbox.contracts.backups import Cut
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.migrations import migrate
from agentbox.restoring.errors import damaged

_CODE: Final = "SELECT type, name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view')"
_COUNTS: Final[Mapping[str, tuple[str, str]]] = {
    "beads": ("beads/beads.db", "SELECT count(*) FROM beads"),
    "memory": ("memory/memory.db", "SELECT count(*) FROM entries"),
    "pods": ("pods/index.db", "SELECT count(*) FROM objects"),
    "agents": ("orchestrator/agents.db", "SELECT count(*) FROM agents"),
}


def present_stores(paths: Paths) -> list[str]:
    """The stores that a state has, by their path below it."""
    return [name for name in STORES if (paths.state / name).is_file()]


@contextmanager
def opened(paths: Paths, name: str) -> Iterator[apsw.Connection]:
    """A store for reading and writing; created, but not migrated, where it is missing."""
    path: Path = paths.state / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL")
        STORES[name].prepare(connection)
        yield connection


def check_and_migrate(snapshot: str, paths: Paths) -> dict[str, int]:
    """Checks each store, then applies missing migrations. Returns the number of the last one by
    path. Raises AgentboxError that names a damaged store, or one of a newer release.
    """
    numbers = {}
    for name in present_stores(paths):
        try:
            with opened(paths, name) as connection:
                rows = connection.execute("PRAGMA integrity_check").fetchall()
                if rows != [("ok",)]:
                    raise damaged(snapshot, f"state/{name}", f"is damaged: {rows[0][0]}")
                if extra := _not_of_migrations(connection, STORES[name]):
                    raise damaged(snapshot, f"state/{name}", f"has {extra}, which no release makes")
                migrate(connection, name, STORES[name].migrations)
            numbers[name] = len(STORES[name].migrations)
        except apsw.Error as error:
            raise damaged(snapshot, f"state/{name}", f"cannot be read: {error}") from error
        except AdapterError as error:
            raise AgentboxError(
                f"cannot restore {snapshot}: {error.message}",
                "Restore it with the release that wrote it, or with a later one.",
            ) from error
    return numbers


def _not_of_migrations(connection: apsw.Connection, store: Store) -> str:
    """A trigger or view of a store that its migrations do not make, "" without one. SQLite would
    run it when the box writes.
    """
    applied = 0
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'migrations'").fetchall():
        row = connection.execute("SELECT count(*) FROM migrations").fetchall()[0]
        applied = int(str(row[0]))
    with closing(apsw.Connection(":memory:")) as fresh:
        store.prepare(fresh)
        migrate(fresh, "a new store", store.migrations[:applied])
        known = set(fresh.execute(_CODE).fetchall())
    for row in connection.execute(_CODE):
        if row not in known:
            return f"the {row[0]} {row[1]!r}"
    return ""


def require_stores(snapshot: str, paths: Paths, cut: Cut, left: Sequence[str]) -> None:
    """Raises AgentboxError (exit 1) that names a store of the cut that is not in the snapshot."""
    for path in cut.stores:
        volume, _, name = path.partition("/")
        is_here = (
            (paths.state / name).is_file()
            if volume == "state"
            else any(member.startswith(f"{path}/") for member in left)
        )
        if not is_here:
            raise damaged(snapshot, path, "is missing")


def require_counts(snapshot: str, paths: Paths, cut: Cut) -> None:
    """Raises AgentboxError (exit 1) that names a store with another number of rows than at the
    cut.
    """
    for slot, (name, query) in _COUNTS.items():
        if slot not in cut.counts or f"state/{name}" not in cut.stores:
            continue
        with opened(paths, name) as connection:
            count = int(str(connection.execute(query).fetchall()[0][0]))
        if count != cut.counts[slot]:
            raise damaged(
                snapshot, f"state/{name}", f"has {count} rows, and {cut.counts[slot]} at the cut"
            )


def count_rows(paths: Paths) -> dict[str, int]:
    """The rows of each store that the operator would miss, counted as the running box does."""
    counts = {}
    for name in present_stores(paths):
        with opened(paths, name) as connection:
            if (rows := rows_of(connection, name)) is not None:
                counts[name] = rows
    return counts
