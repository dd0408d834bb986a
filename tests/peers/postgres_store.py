"""The fixtures of a contract suite for an implementation that keeps its data in a schema of PostgreSQL."""

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from agentbox_testkit.clock import ManualClock
from agentbox_testkit.local_store import LocalStore
from postgres_server import PostgresServer

_MANUAL = "-c agentbox.clock=manual"
_NOW = """CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN current_setting('agentbox.clock', true) = 'manual' THEN (SELECT ms FROM public.manual_clock)
    ELSE floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint END $$"""
_numbers = itertools.count(1)


class ServerClock(ManualClock):
    """The clock of the server, as the sessions of a `PostgresStore` see it; a worker's sessions see the real one."""

    def __init__(
        self, server: PostgresServer, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    ) -> None:
        super().__init__(start)
        self._server = server
        self._set(
            "CREATE TABLE IF NOT EXISTS manual_clock (ms bigint); DELETE FROM manual_clock;"
            f"INSERT INTO manual_clock VALUES ({self._milliseconds})"
        )

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        self._tell()

    def set_wall(self, moment: datetime) -> None:
        super().set_wall(moment)
        self._tell()

    def _tell(self) -> None:
        self._set(f"UPDATE manual_clock SET ms = {self._milliseconds}")

    @property
    def _milliseconds(self) -> int:
        return round(self.now().timestamp() * 1000)

    def _set(self, sql: str) -> None:
        with psycopg.connect(self._server.dsn(), autocommit=True) as db:
            db.execute(sql)


class PostgresStore(LocalStore):
    """A schema of its own on a server that others use too. The box's own clock is the machine's, so that a lease that
    followed it would be found out."""

    def __init__(
        self, slot: Any, server: PostgresServer, prefix: Path, options: Mapping[str, Any]
    ) -> None:
        self.server, self.schema = server, f"contract_{next(_numbers)}"
        secrets = {"dsn": server.dsn(options=_MANUAL)}
        super().__init__(
            slot, "external-pg", prefix, options={**options, "schema": self.schema}, secrets=secrets
        )

    @property
    def worker_secrets(self) -> Mapping[str, str]:
        return {"dsn": self.server.dsn()}

    async def open(self) -> Any:
        adapter = await super().open()
        self.change(_NOW)
        return adapter

    async def kill_backend(self) -> None:
        self.server.stop(at_once=True)

    async def remove(self) -> None:
        """Closes what is open and drops the schema; a server that was killed is started again."""
        await self.close_all()
        self.server.start()
        self.change(f'DROP SCHEMA IF EXISTS "{self.schema}" CASCADE')

    def change(self, sql: str, *values: Any) -> None:
        """Runs a statement in the schema, behind the adapter's back."""
        with self.session() as db:
            db.execute(sql, values or None)

    def session(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """A connection of its own to the schema."""
        return psycopg.connect(
            self.server.dsn(options=f"-c search_path={self.schema},public"), autocommit=True
        )
