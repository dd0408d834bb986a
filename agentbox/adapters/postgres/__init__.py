"""The only way to a PostgreSQL server: who may be connected to, migrations, a pool, typed errors."""

from agentbox.adapters.postgres.database import Connection, Postgres, beat, row, rows
from agentbox.adapters.postgres.migrations import Migration

__all__ = ["Connection", "Migration", "Postgres", "beat", "row", "rows"]
