"""SQLite access: WAL, full sync, foreign keys; one writer thread that batches waiting jobs into one
commit, two readers. A job is a function of a connection, run in its own savepoint: if it raises,
only its own changes are rolled back."""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
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
from agentbox.core.storage.sqlite_threads import QueueItem, read_loop, write_loop
from agentbox.core.storage.store_record import StoreRecord

T = TypeVar("T")
READERS = 2


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
        self._writes: queue.SimpleQueue[QueueItem] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[QueueItem] = queue.SimpleQueue()
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
        self, jobs: "queue.SimpleQueue[QueueItem]", job: Callable[[apsw.Connection], T]
    ) -> T:
        try:
            return await asyncio.wrap_future(self._queue(jobs, job))
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self._to_adapter_error(error) from error

    def _wait(self, jobs: "queue.SimpleQueue[QueueItem]", job: Callable[[apsw.Connection], T]) -> T:
        try:
            return self._queue(jobs, job).result()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self._to_adapter_error(error) from error

    def _queue(
        self, jobs: "queue.SimpleQueue[QueueItem]", job: Callable[[apsw.Connection], T]
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
                target=write_loop,
                args=(writer, self._writes),
                name=f"{self._slot}-writer",
                daemon=True,
            ),
            *(
                threading.Thread(
                    target=read_loop,
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
