"""The SQLite stores of a box: which file has which migrations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from agentbox.adapters.beads.sqlite import schema as beads
from agentbox.adapters.events.delivery import cursor as delivery
from agentbox.adapters.memory import local_sqlite as memory
from agentbox.adapters.memory.sqlite import schema as memory_schema
from agentbox.adapters.pods.local import index as pods
from agentbox.agents.registry import store as agents
from agentbox.api.auth import tokens
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.migrations import migrate
from agentbox.gateway.llm import ledger
from agentbox.mcphost import store as mcp
from agentbox.mesh.host import session_store
from agentbox.mesh.outbox import outbox
from agentbox.restoring.errors import damaged
from agentbox.sessions import store as sessions

Prepare = Callable[[apsw.Connection], None]


def _nothing(_connection: apsw.Connection) -> None:
    """No function or extension is needed."""


@dataclass(frozen=True, slots=True)
class Store:
    """`prepare` registers the SQL functions that the file's tables need."""

    migrations: Sequence[str]
    prepare: Prepare = _nothing


STORES: Final[Mapping[str, Store]] = {
    "beads/beads.db": Store(beads.MIGRATIONS),
    "mesh/outbox.db": Store(outbox.MIGRATIONS),
    "memory/memory.db": Store(memory_schema.MIGRATIONS, memory.prepare),
    "pods/index.db": Store(pods.MIGRATIONS),
    "events/delivery.db": Store(delivery.MIGRATIONS),
    "orchestrator/agents.db": Store(agents.MIGRATIONS),
    "gateway/budgets.db": Store(ledger.MIGRATIONS),
    "secrets/access.db": Store(tokens.MIGRATIONS),
    "mesh/sessions.db": Store(session_store.MIGRATIONS),
    "sessions/sessions.db": Store(sessions.MIGRATIONS),
    "mcp-host/mcp.db": Store(mcp.MIGRATIONS),
}
"""By path below the state folder."""


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
