"""SQLite access: WAL, full sync, foreign keys; one writer thread that batches waiting jobs into one
commit, two readers. A job is a function of a connection, run in its own savepoint: if it raises,
only its own changes are rolled back."""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import apsw

from agentbox.core.background.threads import run_in_thread
from agentbox.core.slot_errors import (
    AdapterError,
    BackendError,
    QuotaExceeded,
    SlotUnavailable,
    disk_full_error,
    is_disk_full,
)
from agentbox.core.storage.migrations import migrate
from agentbox.core.storage.private_files import make_private
from agentbox.core.storage.sqlite_busy import BusyHandler
from agentbox.core.storage.sqlite_errors import to_adapter_error
from agentbox.core.storage.sqlite_loss import advance, check_complete, check_present, identify
from agentbox.core.storage.store_record import StoreRecord

T = TypeVar("T")
Job = Callable[[apsw.Connection], Any]
READERS = 2
BATCH = 64  # jobs per commit
_Item = tuple[Job, "Future[Any]"] | None


class Database:
    """An open store of a slot. SQLite errors become typed errors that name the slot,
    never a value."""

    def __init__(
        self,
        path: Path,
        migrations: Sequence[str],
        slot: str,
        impl: str,
        prepare: Callable[[apsw.Connection], None] = lambda _connection: None,
        *,
        record: StoreRecord | None = None,
    ) -> None:
        """`prepare` is called with each new connection. With a `record`, a database that has lost
        data since the last run is rejected."""
        self.path, self._slot, self._impl, self._prepare = path, slot, impl, prepare
        self._record = record
        self._migrations = migrations
        self._writes: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._identity: tuple[int, int] | None = None

    async def open(self) -> None:
        """Creates or migrates the store and starts the threads. A store of a newer version is
        rejected unchanged."""
        await run_in_thread(self._open)

    async def close(self) -> None:
        """Runs waiting jobs, then stops the threads. Idempotent."""
        try:
            with suppress(
                AdapterError, OSError
            ):  # then the record lags behind the store, which is harmless
                await self._save_record()
        finally:
            threads, self._threads = self._threads, []
            if threads:
                await run_in_thread(lambda: self._stop_threads(threads))

    async def write(self, job: Callable[[apsw.Connection], T]) -> T:
        """Runs a job in the writer; returns once its commit is on disk. A job cancelled before it
        starts does not run."""
        return await self._run(self._writes, job)

    async def read(self, job: Callable[[apsw.Connection], T]) -> T:
        """Runs a read-only job in one snapshot."""
        return await self._run(self._reads, job)

    def write_blocking(self, job: Callable[[apsw.Connection], T]) -> T:
        """As `write`, blocking."""
        return self._wait(self._writes, job)

    def read_blocking(self, job: Callable[[apsw.Connection], T]) -> T:
        """As `read`, blocking."""
        return self._wait(self._reads, job)

    async def pulse(self, now: Any) -> tuple[Literal["ok", "degraded", "down"], str]:
        """Writes a time to the table `pulse` and reads it back. On a full disk the store is
        degraded: it can be read."""
        try:
            await self.write(
                lambda db: db.execute("INSERT OR REPLACE INTO pulse VALUES (0, ?)", (now,))
            )
            result = await self.read(lambda db: fetch_one(db, "SELECT at FROM pulse"))
            if self._record is not None and self._record.due:
                await self._save_record()
        except QuotaExceeded as error:
            return "degraded", error.message
        except AdapterError as error:
            return "down", error.message
        except OSError as error:
            reason = f"cannot write the record of {self.path.name}: {error.strerror}"
            return "degraded" if is_disk_full(error) else "down", reason
        return (
            ("ok", "")
            if result is not None and self.is_present()
            else ("down", f"{self.path.name} is missing")
        )

    def _stop_threads(self, threads: Sequence[threading.Thread]) -> None:
        """The writer's connection is closed last: then SQLite empties the WAL, which read-only
        connections cannot."""
        writer, *readers = threads
        for _ in readers:
            self._reads.put(None)
        for reader in readers:
            reader.join()
        self._writes.put(None)
        writer.join()

    async def _save_record(self) -> None:
        if (record := self._record) is not None:
            store_id, mark = await self.write(advance)
            await run_in_thread(lambda: record.write(id=store_id, mark=mark))

    def is_present(self) -> bool:
        """False if the open file is no longer the one at its path."""
        try:
            stat_result = self.path.stat()
        except OSError:
            return False
        return (stat_result.st_dev, stat_result.st_ino) == self._identity

    async def _run(
        self, jobs: "queue.SimpleQueue[_Item]", job: Callable[[apsw.Connection], T]
    ) -> T:
        try:
            return await asyncio.wrap_future(self._queue(jobs, job))
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self._to_adapter_error(error) from error

    def _wait(self, jobs: "queue.SimpleQueue[_Item]", job: Callable[[apsw.Connection], T]) -> T:
        try:
            return self._queue(jobs, job).result()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self._to_adapter_error(error) from error

    def _queue(
        self, jobs: "queue.SimpleQueue[_Item]", job: Callable[[apsw.Connection], T]
    ) -> "Future[T]":
        if not self._threads:
            raise closed_error(self._slot, self._impl)
        future: Future[T] = Future()
        jobs.put((job, future))
        return future

    def _to_adapter_error(self, error: apsw.Error | UnicodeDecodeError) -> AdapterError:
        return to_adapter_error(error, self.path.name, self._slot, self._impl)

    def _open(self) -> None:
        try:
            recorded = None if self._record is None else check_present(self.path, self._record)
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_private(self.path)
            writer = self._connect(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            try:
                if self._record is not None:
                    check_complete(writer, self.path.name, self._record, recorded)
                migrate(writer, self.path.name, self._migrations)
                if self._record is not None:
                    store_id, mark = identify(writer)
                    self._record.write(id=store_id, mark=mark)
                readers = [self._connect(apsw.SQLITE_OPEN_READONLY) for _ in range(READERS)]
            except BaseException:
                writer.close()
                raise
        except apsw.Error as error:
            raise self._to_adapter_error(error) from error
        except OSError as error:
            if is_disk_full(error):
                raise disk_full_error(f"open {self.path.name}") from error
            detail = f"cannot use {self.path.name}: {error.strerror}"
            raise BackendError(detail, slot=self._slot, impl=self._impl) from error
        stat_result = self.path.stat()
        self._identity = stat_result.st_dev, stat_result.st_ino
        self._threads = [
            threading.Thread(
                target=_write_loop,
                args=(writer, self._writes),
                name=f"{self._slot}-writer",
                daemon=True,
            ),
            *(
                threading.Thread(
                    target=_read_loop,
                    args=(reader, self._reads),
                    name=f"{self._slot}-reader",
                    daemon=True,
                )
                for reader in readers
            ),
        ]
        for thread in self._threads:
            thread.start()

    def _connect(self, flags: int) -> apsw.Connection:
        connection = apsw.Connection(str(self.path), flags=flags)
        connection.set_busy_handler(BusyHandler())
        connection.execute(
            "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY"
        )
        self._prepare(connection)
        return connection


def fetch_all(db: apsw.Connection, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
    """Every row of a query."""
    return list(db.execute(sql, tuple(values)))


def fetch_one(db: apsw.Connection, sql: str, values: Iterable[Any] = ()) -> tuple[Any, ...] | None:
    """The first row of a query, None where there is none."""
    return next(iter(fetch_all(db, sql, values)), None)


def closed_error(slot: str, impl: str) -> SlotUnavailable:
    """The error of a call before `open` or after `close`."""
    return SlotUnavailable(
        f"cannot use {slot}: the store is not open", slot=slot, impl=impl, since=None
    )


def _write_loop(connection: apsw.Connection, jobs: "queue.SimpleQueue[_Item]") -> None:
    try:
        while (first := jobs.get()) is not None:
            batch, ended = _drain(first, jobs)
            _commit(connection, batch)
            if ended:
                return
    finally:
        connection.close()


def _drain(
    first: tuple[Job, "Future[Any]"], jobs: "queue.SimpleQueue[_Item]"
) -> tuple[list[tuple[Job, "Future[Any]"]], bool]:
    """The waiting jobs, and whether the stop marker is among them."""
    batch = [first]
    with suppress(queue.Empty):
        while len(batch) < BATCH:
            item = jobs.get_nowait()
            if item is None:
                return batch, True
            batch.append(item)
    return batch, False


def _commit(connection: apsw.Connection, batch: list[tuple[Job, "Future[Any]"]]) -> None:
    """One transaction for all, a savepoint for each; results are set after the commit. Jobs
    cancelled before their turn do not run."""
    pending = iter(batch)
    outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
    try:
        connection.execute("BEGIN IMMEDIATE")
        for job, future in pending:
            if future.set_running_or_notify_cancel():
                outcomes.append((future, None, None))  # so that its future is completed in any case
                outcomes[-1] = (future, *_within_savepoint(connection, job))
        connection.execute("COMMIT")
    except BaseException as error:  # noqa: BLE001 - the futures carry it to the callers
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        started = [future for future, _result, _failure in outcomes]
        remaining = [future for _job, future in pending if future.set_running_or_notify_cancel()]
        outcomes = [(future, None, error) for future in (*started, *remaining)]
    for future, result, failure in outcomes:
        _set_outcome(future, result, failure)


def _within_savepoint(connection: apsw.Connection, job: Job) -> tuple[Any, BaseException | None]:
    connection.execute("SAVEPOINT job")
    try:
        result = job(connection)
    except (apsw.FullError, apsw.IOError):
        raise  # SQLite may have rolled the whole transaction back
    except BaseException as error:  # noqa: BLE001 - the future carries it to the caller
        connection.execute("ROLLBACK TO job; RELEASE job")
        return None, error
    connection.execute("RELEASE job")
    return result, None


def _read_loop(connection: apsw.Connection, jobs: "queue.SimpleQueue[_Item]") -> None:
    try:
        while (item := jobs.get()) is not None:
            job, future = item
            if future.set_running_or_notify_cancel():
                _read(connection, job, future)
    finally:
        connection.close()


def _read(connection: apsw.Connection, job: Job, future: "Future[Any]") -> None:
    try:
        connection.execute("BEGIN")
        result = job(connection)
    except BaseException as error:  # noqa: BLE001 - the future carries it to the caller
        _set_outcome(future, None, error)
    else:
        _set_outcome(future, result, None)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _set_outcome(future: "Future[Any]", result: Any, failure: BaseException | None) -> None:
    with suppress(CancelledError):
        if failure is not None:
            future.set_exception(failure)
        else:
            future.set_result(result)
