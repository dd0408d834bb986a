"""One moment of a schema in PostgreSQL, as text that every later server reads (`COPY`)."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentbox.core.adapter_error import AdapterError
from agentbox.core.canonical import canonical_json
from agentbox.core.storage.postgres.config import DatabaseConfig
from agentbox.core.storage.postgres.errors import connection_error, to_adapter_error
from agentbox.core.storage.postgres.target import connection_parameters, trusted_file

if TYPE_CHECKING:
    from psycopg import Connection

BEGIN_SECONDS = 5.0
DUMP_FILE = "store.json"  # beside `<table>.copy`: which server, schema, migration, tables


class SchemaDump:
    """Blocking; a connection of its own with one transaction that only reads."""

    def __init__(self, cfg: DatabaseConfig) -> None:
        self._cfg = cfg
        self._connection: Connection[tuple[Any, ...]] | None = None

    def connect(self) -> None:
        """Raises SlotUnavailable, ValidationError."""
        import psycopg

        arguments = connection_parameters(
            self._cfg.secrets.get("dsn", ""),
            ca_file=trusted_file(self._cfg.paths, self._cfg.options.ca_file),
            name=f"agentbox:{self._cfg.box}:backup"[:63],
            timeout_s=self._cfg.options.timeout_seconds,
        )
        try:
            self._connection = psycopg.connect(**arguments, autocommit=True)
        except (psycopg.Error, OSError) as error:
            raise connection_error(self._cfg.slot, self._cfg.use, error) from None

    def begin(self, seconds: float = BEGIN_SECONDS) -> None:
        """The snapshot of the transaction is that of its first query. Raises BackendError,
        SlotUnavailable if the server, which may be stopped, does not answer within `seconds`.
        """
        with self._answered_within(seconds):
            self._query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._query("SELECT count(*) FROM pg_class WHERE false")

    @property
    def size(self) -> int:
        """Bytes of the tables on the server."""
        rows = self._query(
            "SELECT coalesce(sum(pg_relation_size(c.oid)), 0)::bigint FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relkind = 'r'",
            (self._cfg.options.schema,),
        )
        return int(rows[0][0])

    def write(self, folder: Path, stop: Callable[[], None]) -> Mapping[str, Any]:
        """Writes `<table>.copy` for each table, and DUMP_FILE, which it returns. Raises
        BackendError, OSError.
        """
        schema = self._cfg.options.schema
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tables = [
            str(row[0])
            for row in self._query(
                "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE n.nspname = %s AND c.relkind = 'r' ORDER BY 1",
                (schema,),
            )
        ]
        columns: dict[str, list[str]] = {}
        for table in tables:
            columns[table] = self._copy(schema, table, folder / f"{table}.copy", stop)
        ((migration,),) = self._query(
            f"SELECT coalesce(max(number), 0) FROM {_quoted(schema)}.migrations"
        )
        ((version, lsn),) = self._query(
            "SELECT current_setting('server_version'), CASE WHEN pg_is_in_recovery() THEN '' "
            "ELSE pg_current_wal_lsn()::text END"
        )
        found = {
            "schema": schema,
            "migration": int(migration),
            "server_version": str(version),
            "wal_lsn": str(lsn),
            "columns": columns,
        }
        (folder / DUMP_FILE).write_bytes(canonical_json(found) + b"\n")
        return found

    def count(self, table: str) -> int:
        """Rows of a table at that moment."""
        rows = self._query(
            f"SELECT count(*) FROM {_quoted(self._cfg.options.schema)}.{_quoted(table)}"
        )
        return int(rows[0][0])

    def close(self) -> None:
        """Idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _copy(self, schema: str, table: str, target: Path, stop: Callable[[], None]) -> list[str]:
        """Every column but those that the server computes, which COPY cannot read back."""
        import psycopg

        names = [
            str(row[0])
            for row in self._query(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = %s "
                "AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position",
                (schema, table),
            )
        ]
        listed = ", ".join(map(_quoted, names))
        sql = f"COPY {_quoted(schema)}.{_quoted(table)} ({listed}) TO STDOUT"
        assert self._connection is not None, "connected"
        try:
            with (
                target.open("xb") as stream,
                self._connection.cursor() as cursor,
                cursor.copy(sql.encode()) as rows,
            ):
                for piece in rows:
                    stop()
                    stream.write(piece)
        except psycopg.Error as error:
            raise to_adapter_error(self._cfg.slot, self._cfg.use, error) from None
        return names

    @contextmanager
    def _answered_within(self, seconds: float) -> Iterator[None]:
        """Ends the connection once the time is over: a limit of the server's would need it to
        answer.
        """
        assert self._connection is not None, "connected"
        late = threading.Event()
        with socket.socket(fileno=os.dup(self._connection.fileno())) as connected:

            def end() -> None:
                late.set()
                connected.shutdown(socket.SHUT_RDWR)

            timer = threading.Timer(max(seconds, 0), end)
            timer.start()
            try:
                yield
            except AdapterError as error:
                if not late.is_set():
                    raise
                reason = TimeoutError("timeout")
                raise connection_error(self._cfg.slot, self._cfg.use, reason) from error
            finally:
                timer.cancel()
                timer.join()

    def _query(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        import psycopg

        assert self._connection is not None, "connected"
        try:
            cursor = self._connection.execute(sql.encode(), values or None)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise to_adapter_error(self._cfg.slot, self._cfg.use, error) from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
