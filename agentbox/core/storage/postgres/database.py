"""A pool of connections to one schema. A job is a coroutine of a connection, in a transaction of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import AdapterError, BackendError, SlotUnavailable
from agentbox.core.storage.postgres.errors import AGAIN, typed, unreachable
from agentbox.core.storage.postgres.migrations import Migration, migrate
from agentbox.core.storage.postgres.target import parameters

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

    Connection = AsyncConnection[tuple[Any, ...]]
else:
    Connection = Any

T = TypeVar("T")
Job = Callable[[Connection], Awaitable[T]]
Prepare = Callable[[Connection], Awaitable[str]]
TRIES = 4  # of a transaction that others were in the way of
_UNDO_SECONDS = 0.5  # for the server to break off what was cancelled
_CLOSE_SECONDS = 3.0
_INSTEAD_SECONDS = (
    1.0  # for a connection in place of one that the server ended: longer, and the slot would be told down too late
)
_PULSE_SECONDS = 1.4


async def _nothing(_db: Connection) -> str:
    return ""


class Postgres:
    """An open schema of a slot. Read committed; every statement ends within `timeout_seconds`."""

    def __init__(
        self, cfg: SlotConfig, schema: str, migrations: Sequence[Migration], prepare: Prepare = _nothing
    ) -> None:
        """`prepare` is called once before the migrations; what it returns is one more schema of the search path."""
        self._cfg, self._migrations, self._prepare = cfg, migrations, prepare
        self._schema = str(cfg.option("schema", schema))
        self._size = int(cfg.option("pool_size", 8))
        self._seconds = int(cfg.option("timeout_seconds", 10))
        self._also = ""
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._running: set[asyncio.Task[Any]] = set()

    async def open(self, deadline: Deadline) -> None:
        """Connects, creates or migrates the schema, and starts the pool. Raises SlotUnavailable, IntegrityError, and
        ValidationError for a connection string that leads where it may not."""
        import psycopg
        from psycopg_pool import AsyncConnectionPool, PoolTimeout

        roots = str(self._cfg.option("ca_file", ""))
        given = parameters(
            self._cfg.secrets.get("dsn", ""), ca_file=str(self._cfg.paths.at(roots)) if roots else "",
            name=f"agentbox:{self._cfg.box}"[:63], timeout_s=self._seconds,
        )  # fmt: skip
        try:
            async with asyncio.timeout(deadline.remaining()):
                first = await psycopg.AsyncConnection.connect(**given, autocommit=True)
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise unreachable(self._cfg.slot, self._cfg.use, error) from None
        try:
            async with asyncio.timeout(deadline.remaining()):
                await self._prepare_schema(first)
        except psycopg.Error as error:
            raise typed(self._cfg.slot, self._cfg.use, error) from None
        finally:
            await first.close()
        pool = AsyncConnectionPool(
            kwargs={**given, "autocommit": True}, min_size=1, max_size=self._size, open=False, configure=self._configure,
            timeout=self._seconds, reconnect_timeout=self._seconds, name=f"agentbox-{self._cfg.slot}",
        )  # fmt: skip
        try:
            await pool.open(wait=True, timeout=deadline.remaining())
        except BaseException as error:
            await pool.close(_CLOSE_SECONDS)
            if isinstance(error, PoolTimeout):
                raise unreachable(self._cfg.slot, self._cfg.use, error) from None
            raise
        self._pool = pool

    async def close(self) -> None:
        """Breaks off what runs, then ends every connection. May be called again."""
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
        """Runs a job in a transaction; again when others were in the way. Cancelled, it did all or nothing."""
        return await self._bounded(self._transaction(job))

    async def repeatable(self, job: Job[T]) -> T:
        """Runs a job whose statements are each a transaction of their own, and which may be done twice."""
        return await self._bounded(self._with(job, transaction=False))

    async def pulse(self, job: Job[None]) -> tuple[Literal["ok", "degraded", "down"], str]:
        """Does it, which is `beat` or more, within 1.5 s. Degraded where a newer version has migrated the schema meanwhile: what this
        one asks for may not be there any more."""

        async def beating(db: Connection) -> tuple[Any, ...] | None:
            await job(db)
            return await row(db, "SELECT count(*) FROM migrations")

        try:
            async with asyncio.timeout(_PULSE_SECONDS):
                found = await self.run(beating)
        except AdapterError as error:
            return "down", error.message
        except TimeoutError:
            return "down", f"PostgreSQL did not answer within {_PULSE_SECONDS} s"
        if found is not None and found[0] > len(self._migrations):
            return "degraded", f"a newer version has migrated schema {self._schema}: update this box"
        return "ok", ""

    async def _transaction(self, job: Job[T]) -> T:
        for left in reversed(range(TRIES)):
            try:
                return await self._with(job, transaction=True)
            except BackendError as error:
                if not left or getattr(error.__cause__, "sqlstate", None) not in AGAIN:
                    raise
        raise AssertionError("unreachable")

    async def _with(self, job: Job[T], *, transaction: bool) -> T:
        """A connection that the server ended meanwhile is found out by its first statement: then another is taken."""
        import psycopg

        for left in reversed(range(self._size + 1)):
            pool, begun = self._open_pool(), False
            db = await self._take(pool, self._seconds if left == self._size else _INSTEAD_SECONDS)
            try:
                if not transaction:
                    return await job(db)
                async with db.transaction():
                    begun = True
                    return await job(db)
            except UnicodeEncodeError:
                raise refuse("", "holds a lone surrogate") from None
            except psycopg.Error as error:
                if begun or not db.closed or not left:
                    raise typed(self._cfg.slot, self._cfg.use, error) from error
            finally:
                await pool.putconn(db)
        raise AssertionError("unreachable")

    async def _take(self, pool: "AsyncConnectionPool[Connection]", seconds: float) -> Connection:
        from psycopg_pool import PoolClosed, PoolTimeout

        try:
            return await pool.getconn(seconds)
        except (PoolTimeout, PoolClosed) as error:
            raise unreachable(self._cfg.slot, self._cfg.use, error) from None

    async def _bounded(self, work: Coroutine[Any, Any, T]) -> T:
        """The result. Cancelled, it waits a moment for the server to break off, and then for nothing: what hangs is cut."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            asked = asyncio.current_task()
            if task.cancelled() and asked is not None and not asked.cancelling():  # by `close`, not by the caller
                raise self._closed() from None
            task.cancel()
            await asyncio.wait({task}, timeout=_UNDO_SECONDS)
            if task.done() and not task.cancelled():
                task.exception()  # nobody waits for it any more
            raise

    def _open_pool(self) -> "AsyncConnectionPool[Connection]":
        if self._pool is None:
            raise self._closed()
        return self._pool

    def _closed(self) -> SlotUnavailable:
        slot, impl = self._cfg.slot, self._cfg.use
        return SlotUnavailable(f"cannot use {slot}: the store is not open", slot=slot, impl=impl, since=None)

    async def _prepare_schema(self, db: Connection) -> None:
        encoding = await row(db, "SHOW server_encoding")
        if encoding != ("UTF8",):
            raise BackendError(
                "cannot use PostgreSQL: the database is not in UTF8", slot=self._cfg.slot, impl=self._cfg.use
            )
        async with db.transaction():
            await db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"agentbox {self._schema}",))
            self._also = await self._prepare(db)
            await self._configure(db)
            await migrate(db, self._schema, self._migrations)

    async def _configure(self, db: Connection) -> None:
        path = ", ".join(f'"{name}"' for name in (self._schema, self._also) if name)
        await db.execute(
            "SELECT set_config('search_path', %s, false), set_config('statement_timeout', %s, false),"
            " set_config('default_transaction_isolation', 'read committed', false)",
            (path, f"{self._seconds}s"),
        )


async def rows(db: Connection, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
    """Every row of a query."""
    found = await db.execute(sql.encode(), tuple(values))
    return await found.fetchall()


async def row(db: Connection, sql: str, values: Iterable[Any] = ()) -> tuple[Any, ...] | None:
    """The first row of a query, None where there is none."""
    found = await db.execute(sql.encode(), tuple(values))
    return await found.fetchone()


async def beat(db: Connection) -> None:
    """Writes the server's time and reads it back."""
    await db.execute("INSERT INTO pulse VALUES (0, now_ms()) ON CONFLICT (id) DO UPDATE SET at = excluded.at")
    await row(db, "SELECT at FROM pulse")
