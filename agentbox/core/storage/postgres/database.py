"""A connection pool for one schema. A job is a coroutine of a connection, run in its own
transaction.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import AdapterError, BackendError, SlotUnavailable
from agentbox.core.storage.postgres.config import DatabaseConfig
from agentbox.core.storage.postgres.errors import (
    RETRYABLE_STATES,
    connection_error,
    to_adapter_error,
)
from agentbox.core.storage.postgres.migrations import Migration, migrate
from agentbox.core.storage.postgres.target import connection_parameters, trusted_file

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

    Connection = AsyncConnection[tuple[Any, ...]]
else:
    Connection = Any

T = TypeVar("T")
Job = Callable[[Connection], Awaitable[T]]
Prepare = Callable[[Connection], Awaitable[str]]
MAX_ATTEMPTS = 4  # for a transaction that conflicts with others
_CANCEL_SECONDS = 0.5  # to cancel a statement on the server
_CLOSE_SECONDS = 3.0
# to replace a connection that the server closed; longer would report the slot down too late
_REPLACEMENT_SECONDS = 1.0
_PULSE_SECONDS = 1.4


async def _no_preparation(_db: Connection) -> str:
    return ""


class Postgres:
    """An open schema of a slot. Read committed; statements time out after `timeout_seconds`."""

    def __init__(
        self,
        cfg: DatabaseConfig,
        migrations: Sequence[Migration],
        prepare: Prepare = _no_preparation,
    ) -> None:
        """`prepare` is called once before the migrations; it returns an additional schema for the
        search path.
        """
        self._cfg, self._migrations, self._prepare = cfg, migrations, prepare
        self._schema = cfg.options.schema
        self._size = cfg.options.pool_size
        self._timeout_s = cfg.options.timeout_seconds
        self._extra_schema = ""
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._running: set[asyncio.Task[Any]] = set()

    async def open(self, deadline: Deadline) -> None:
        """Connects, creates or migrates the schema, and opens the pool. Raises SlotUnavailable,
        IntegrityError, and ValidationError for a connection string that is not allowed.
        """
        import psycopg
        from psycopg_pool import AsyncConnectionPool, PoolTimeout

        arguments = connection_parameters(
            self._cfg.secrets.get("dsn", ""),
            ca_file=trusted_file(self._cfg.paths, self._cfg.options.ca_file),
            name=f"agentbox:{self._cfg.box}"[:63],
            timeout_s=self._timeout_s,
        )
        try:
            async with asyncio.timeout(deadline.remaining()):
                connection = await psycopg.AsyncConnection.connect(**arguments, autocommit=True)
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise connection_error(self._cfg.slot, self._cfg.use, error) from None
        try:
            async with asyncio.timeout(deadline.remaining()):
                await self._prepare_schema(connection)
        except psycopg.Error as error:
            raise to_adapter_error(self._cfg.slot, self._cfg.use, error) from None
        finally:
            await connection.close()
        pool = AsyncConnectionPool(
            kwargs={**arguments, "autocommit": True},
            min_size=1,
            max_size=self._size,
            open=False,
            configure=self._configure,
            timeout=self._timeout_s,
            reconnect_timeout=self._timeout_s,
            name=f"agentbox-{self._cfg.slot}",
        )
        try:
            await pool.open(wait=True, timeout=deadline.remaining())
        except BaseException as error:
            await pool.close(_CLOSE_SECONDS)
            if isinstance(error, PoolTimeout):
                raise connection_error(self._cfg.slot, self._cfg.use, error) from None
            raise
        self._pool = pool

    async def close(self) -> None:
        """Cancels running jobs and closes all connections. Idempotent."""
        import psycopg

        pool, self._pool = self._pool, None
        if pool is not None:
            for task in self._running:
                task.cancel()
            if self._running:
                await asyncio.wait(self._running, timeout=_CLOSE_SECONDS / 2)
            with suppress(psycopg.Error, OSError):
                await pool.close(_CLOSE_SECONDS / 2)

    async def run(self, job: Job[T]) -> T:
        """Runs a job in a transaction, with retries after conflicts. If cancelled, it took effect
        completely or not at all.
        """
        return await self._run_cancellable(self._transaction(job))

    async def run_repeatable(self, job: Job[T]) -> T:
        """Runs a job whose statements are separate transactions and may be repeated."""
        return await self._run_cancellable(self._with_connection(job, transaction=False))

    async def pulse(self, job: Job[None]) -> tuple[Literal["ok", "degraded", "down"], str]:
        """Runs `job`, which includes `write_pulse`, within 1.5 s. Degraded if a newer version has
        migrated the schema meanwhile: tables of this version may be missing.
        """

        async def run_pulse(db: Connection) -> tuple[Any, ...] | None:
            await job(db)
            return await fetch_one(db, "SELECT count(*) FROM migrations")

        try:
            async with asyncio.timeout(_PULSE_SECONDS):
                result = await self.run(run_pulse)
        except AdapterError as error:
            return "down", error.message
        except TimeoutError:
            return "down", f"PostgreSQL did not answer within {_PULSE_SECONDS} s"
        if result is not None and result[0] > len(self._migrations):
            return (
                "degraded",
                f"a newer version has migrated schema {self._schema}: update this box",
            )
        return "ok", ""

    async def _transaction(self, job: Job[T]) -> T:
        for remaining in reversed(range(MAX_ATTEMPTS)):
            try:
                return await self._with_connection(job, transaction=True)
            except BackendError as error:
                if (
                    not remaining
                    or getattr(error.__cause__, "sqlstate", None) not in RETRYABLE_STATES
                ):
                    raise
        raise AssertionError("unreachable")

    async def _with_connection(self, job: Job[T], *, transaction: bool) -> T:
        """A connection that the server closed fails at its first statement: then another one is
        used.
        """
        import psycopg

        for remaining in reversed(range(self._size + 1)):
            pool, started = self._open_pool(), False
            db = await self._acquire(
                pool, self._timeout_s if remaining == self._size else _REPLACEMENT_SECONDS
            )
            try:
                if not transaction:
                    return await job(db)
                async with db.transaction():
                    started = True
                    return await job(db)
            except UnicodeEncodeError:
                raise invalid_value("", "contains a lone surrogate") from None
            except psycopg.Error as error:
                if started or not db.closed or not remaining:
                    raise to_adapter_error(self._cfg.slot, self._cfg.use, error) from error
            finally:
                await pool.putconn(db)
        raise AssertionError("unreachable")

    async def _acquire(self, pool: "AsyncConnectionPool[Connection]", seconds: float) -> Connection:
        from psycopg_pool import PoolClosed, PoolTimeout

        try:
            return await pool.getconn(seconds)
        except (PoolTimeout, PoolClosed) as error:
            raise connection_error(self._cfg.slot, self._cfg.use, error) from None

    async def _run_cancellable(self, work: Coroutine[Any, Any, T]) -> T:
        """The result. If cancelled, it waits briefly for the server to cancel the statement, then
        abandons it.
        """
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if (
                task.cancelled() and current is not None and not current.cancelling()
            ):  # by `close`, not by the caller
                raise self._closed_error() from None
            task.cancel()
            await asyncio.wait({task}, timeout=_CANCEL_SECONDS)
            if task.done() and not task.cancelled():
                task.exception()  # its result is not needed any more
            raise

    def _open_pool(self) -> "AsyncConnectionPool[Connection]":
        if self._pool is None:
            raise self._closed_error()
        return self._pool

    def _closed_error(self) -> SlotUnavailable:
        slot, impl = self._cfg.slot, self._cfg.use
        return SlotUnavailable(
            f"cannot use {slot}: the store is not open", slot=slot, impl=impl, since=None
        )

    async def _prepare_schema(self, db: Connection) -> None:
        encoding = await fetch_one(db, "SHOW server_encoding")
        if encoding != ("UTF8",):
            raise BackendError(
                "cannot use PostgreSQL: the encoding of the database is not UTF8",
                slot=self._cfg.slot,
                impl=self._cfg.use,
            )
        async with db.transaction():
            await db.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
                (f"agentbox {self._schema}",),
            )
            self._extra_schema = await self._prepare(db)
            await self._configure(db)
            await migrate(db, self._schema, self._migrations)

    async def _configure(self, db: Connection) -> None:
        path = ", ".join(f'"{name}"' for name in (self._schema, self._extra_schema) if name)
        await db.execute(
            "SELECT set_config('search_path', %s, false), set_config('statement_timeout', %s, "
            "false),"
            " set_config('default_transaction_isolation', 'read committed', false)",
            (path, f"{self._timeout_s}s"),
        )


async def fetch_all(db: Connection, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
    """Every row of a query."""
    cursor = await db.execute(sql.encode(), tuple(values))
    return await cursor.fetchall()


async def fetch_one(db: Connection, sql: str, values: Iterable[Any] = ()) -> tuple[Any, ...] | None:
    """The first row of a query, None where there is none."""
    cursor = await db.execute(sql.encode(), tuple(values))
    return await cursor.fetchone()


async def write_pulse(db: Connection) -> None:
    """Writes the server's time and reads it back."""
    await db.execute(
        "INSERT INTO pulse VALUES (0, now_ms()) ON CONFLICT (id) DO UPDATE SET at = excluded.at"
    )
    await fetch_one(db, "SELECT at FROM pulse")
