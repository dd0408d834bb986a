"""The SQLite stores of a box: which file has which migrations. Imported by what reads or migrates
stores only, since it imports the program of each.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from agentbox.adapters.beads.sqlite import schema as beads
from agentbox.adapters.events.delivery import cursor as delivery
from agentbox.adapters.memory import local_sqlite as memory
from agentbox.adapters.memory.sqlite import schema as memory_schema
from agentbox.adapters.pods.local import index as pods
from agentbox.agents.registry import store as agents
from agentbox.api.auth import access_store
from agentbox.gateway.llm import ledger
from agentbox.mcphost import store as mcp
from agentbox.mesh.host import session_store
from agentbox.mesh.outbox import outbox
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
    "secrets/access.db": Store(access_store.MIGRATIONS),
    "mesh/sessions.db": Store(session_store.MIGRATIONS),
    "sessions/sessions.db": Store(sessions.MIGRATIONS),
    "mcp-host/mcp.db": Store(mcp.MIGRATIONS),
}
"""By path below the state folder."""
