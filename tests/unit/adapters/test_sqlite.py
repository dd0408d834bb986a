"""The one way to open SQLite."""

import asyncio
import os
import subprocess
import sys
import threading

import apsw
import pytest
import pytest_asyncio

from agentbox.core.slot_errors import BackendError, QuotaExceeded, SlotUnavailable
from agentbox.core.storage.sqlite import Database, fetch_all

SCHEMA = ("CREATE TABLE t (n INTEGER PRIMARY KEY) STRICT",)


@pytest_asyncio.fixture
async def db(tmp_path):
    made = Database(tmp_path / "x.db", SCHEMA, "beads", "local-sqlite")
    await made.open()
    yield made
    await made.close()


def insert(number):
    return lambda db: db.execute("INSERT INTO t VALUES (?)", (number,)).fetchall()


async def numbers(db):
    return [row[0] for row in await db.read(lambda c: fetch_all(c, "SELECT n FROM t ORDER BY n"))]


def modes(folder):
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


async def test_the_store_is_private(tmp_path):
    """0600 for the file and SQLite's files beside it, whatever the umask; also for one that an
    older version created."""
    before = os.umask(0o022)
    try:
        store = Database(tmp_path / "x.db", SCHEMA, "beads", "local-sqlite")
        await store.open()
        await store.write(insert(1))
        assert modes(tmp_path) == dict.fromkeys(("x.db", "x.db-wal", "x.db-shm"), 0o600)
        await store.close()
        (tmp_path / "x.db").chmod(0o644)
        await store.open()
        assert await numbers(store) == [1]
        assert set(modes(tmp_path).values()) == {0o600}
        await store.close()
    finally:
        os.umask(before)


async def test_a_failed_job_undoes_itself_alone(db):
    """Other jobs of the same commit are stored."""

    def fails(connection):
        insert(2)(connection)
        raise KeyError("no")

    outcomes = await asyncio.gather(
        db.write(insert(1)), db.write(fails), db.write(insert(3)), return_exceptions=True
    )
    assert isinstance(outcomes[1], KeyError)
    assert await numbers(db) == [1, 3]


async def test_jobs_that_wait_share_a_commit(db):
    """Far fewer commits than jobs."""
    commits = []
    await db.write(lambda connection: connection.set_commit_hook(lambda: bool(commits.append(1))))
    await asyncio.gather(*(db.write(insert(n)) for n in range(300)))
    assert len(await numbers(db)) == 300
    assert len(commits) < 100


async def test_a_cancelled_job_runs_whole_or_not(db):
    """Cancelled while it waits, it does not run; a later job finds either state, never half of it."""
    gate = threading.Event()
    blocking = asyncio.create_task(db.write(lambda _: gate.wait(10)))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(db.write(insert(1)))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    gate.set()
    await blocking
    assert await numbers(db) == []


async def test_a_job_cancelled_within_a_batch_does_not_run(db):
    """Two jobs that share a commit: while the first runs, the second is cancelled."""
    opening, first = threading.Event(), threading.Event()
    held = asyncio.create_task(db.write(lambda _: opening.wait(10)))
    await asyncio.sleep(0.05)
    begun = threading.Event()
    batch = [
        db.write(lambda _: begun.set() or first.wait(10)),
        db.write(insert(1)),
        db.write(insert(2)),
    ]
    tasks = [asyncio.create_task(job) for job in batch]
    await asyncio.sleep(0)
    opening.set()
    assert await asyncio.to_thread(begun.wait, 10)
    tasks[1].cancel()
    await asyncio.sleep(0)
    first.set()
    await asyncio.gather(held, *tasks, return_exceptions=True)
    assert await numbers(db) == [2]


async def test_readers_cannot_write(db):
    """Their connection refuses."""
    with pytest.raises(BackendError, match="read-only"):
        await db.read(insert(1))


async def test_a_second_process_waits_for_the_first(db, tmp_path):
    """busy_timeout: a writer elsewhere delays, it does not fail."""
    other = apsw.Connection(str(tmp_path / "x.db"))
    other.execute("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")
    ours = asyncio.create_task(db.write(insert(2)))
    await asyncio.sleep(0)
    other.execute("COMMIT")
    await ours
    assert await numbers(db) == [1, 2]
    other.close()


async def test_a_full_disk_is_a_typed_error(db):
    """And the database works again when there is space."""
    await db.write(lambda connection: connection.execute("PRAGMA max_page_count = 3").fetchall())
    big = lambda connection: connection.execute(  # noqa: E731
        "CREATE TABLE big AS WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM s LIMIT 1000) SELECT randomblob(1000) FROM s"
    ).fetchall()
    with pytest.raises(QuotaExceeded, match="disk is full"):
        await db.write(big)
    await db.write(
        lambda connection: connection.execute("PRAGMA max_page_count = 100000").fetchall()
    )
    await db.write(insert(1))
    assert await numbers(db) == [1]


async def test_closed_is_unavailable(db):
    """Before open and after close."""
    await db.close()
    with pytest.raises(SlotUnavailable):
        await db.write(insert(1))


HOLDS = """
import sys, time, apsw
db = apsw.Connection(sys.argv[1])
db.set_busy_timeout(60_000)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
while True:
    time.sleep(0.15)
    db.execute("COMMIT")
    time.sleep(0.004)
    db.execute("BEGIN IMMEDIATE")
"""


async def test_a_process_that_writes_without_pause_starves_nobody(db):
    """It releases the lock for 4 ms in 154: each of our writes gets it within a few of them."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(db.path)], stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout.readline() == "held\n"
            for number in range(20):
                await db.write(insert(number))
                await asyncio.sleep(0.01)  # so that the other has its turn
            assert other.poll() is None
        finally:
            other.kill()
    assert await numbers(db) == list(range(20))
