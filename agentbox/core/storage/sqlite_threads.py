"""The threads of a SQLite store: a writer that commits waiting jobs together, and readers. A job is
a function of a connection; each job of the writer runs in its own savepoint."""

import queue
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any

import apsw

Job = Callable[[apsw.Connection], Any]
BATCH = 64  # jobs per commit
QueueItem = tuple[Job, "Future[Any]"] | None  # None ends the thread


def write_loop(connection: apsw.Connection, jobs: "queue.SimpleQueue[QueueItem]") -> None:
    """Commits up to BATCH waiting jobs at once."""
    try:
        while (first := jobs.get()) is not None:
            batch, ended = _drain(first, jobs)
            _commit(connection, batch)
            if ended:
                return
    finally:
        connection.close()


def _drain(
    first: tuple[Job, "Future[Any]"], jobs: "queue.SimpleQueue[QueueItem]"
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


def read_loop(connection: apsw.Connection, jobs: "queue.SimpleQueue[QueueItem]") -> None:
    """Runs each job in a snapshot of its own."""
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
