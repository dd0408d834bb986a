"""Eight processes drain 10,000 beads of one PostgreSQL, beside what `SELECT ... FOR UPDATE SKIP LOCKED` alone can do.

`python bench/scale.py [--runs N] [--beads N] [--processes N]`. A process is an adapter on the store, no whole box. Each run:
the plain queue with one commit an item, with two (take, finish), then the beads without and with killed processes. Exit 1
when a bead is left, closed twice, or an acknowledged close is lost.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/peers"))

import psycopg
from agentbox_testkit.local_store import LocalStore
from draining import Drained, create, drain
from measure import Claim, write_results
from postgres_server import PostgresServer, running
from postgres_store import PostgresStore

BEADS, PROCESSES, TASKS, KILLS = 10_000, 8, 4, 8
_TAKE = "SELECT id FROM plain WHERE state = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"


async def plain_worker(dsn: str, tasks: int, commits: int) -> None:
    """A queue in SQL and nothing else: no lease, no clock, no order but the id, no answer but the id."""

    async def one() -> int:
        done = 0
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as db:
            while True:
                if commits == 1:
                    sql = f"UPDATE plain SET state = 2 WHERE id = ({_TAKE}) RETURNING id"
                else:
                    sql = f"UPDATE plain SET state = 1 WHERE id = ({_TAKE}) RETURNING id"
                taken = await (await db.execute(sql.encode())).fetchone()
                if taken is None:
                    return done
                if commits == 2:
                    await db.execute("UPDATE plain SET state = 2 WHERE id = %s", taken)
                done += 1

    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    done = await asyncio.gather(*(one() for _ in range(tasks)))
    print(json.dumps({"done": sum(done), "at": time.monotonic()}), flush=True)


async def plain(server: PostgresServer, beads: int, processes: int, commits: int) -> float:
    """Items a second."""
    with psycopg.connect(server.dsn(), autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS plain")
        db.execute("CREATE TABLE plain (id integer PRIMARY KEY, state integer NOT NULL)")
        db.execute("CREATE INDEX plain_ready ON plain (id) WHERE state = 0")
        db.execute("INSERT INTO plain SELECT generate_series(1, %s), 0", (beads,))
    crew = [
        await asyncio.create_subprocess_exec(
            sys.executable, __file__, "--plain", server.dsn(), str(TASKS), str(commits),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(processes)
    ]  # fmt: skip
    for process in crew:
        await _of(process.stdout).readline()
    started = time.monotonic()
    said = [json.loads((await process.communicate())[0]) for process in _gone(crew)]
    if sum(one["done"] for one in said) != beads:
        raise RuntimeError(f"the plain queue lost items: {said}")
    return beads / (max(one["at"] for one in said) - started)


async def plain_insert(server: PostgresServer, rows: int) -> float:
    """Rows a second of a bare queue, each its own commit: by as many tasks and connections of one process as make the beads."""
    with psycopg.connect(server.dsn(), autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS plain_made")
        db.execute(
            "CREATE TABLE plain_made (id text PRIMARY KEY, title text, data text, state integer NOT NULL)"
        )
        db.execute("CREATE INDEX plain_made_ready ON plain_made (id) WHERE state = 0")
    numbers = iter(range(rows))

    async def one(db: psycopg.AsyncConnection) -> None:
        async with db:
            for number in numbers:
                values = (str(uuid4()), f"{number}", f'{{"n": {number}}}')
                made = await db.execute(
                    "INSERT INTO plain_made VALUES (%s, %s, %s, 0) RETURNING id", values
                )
                await made.fetchone()

    crew = [await psycopg.AsyncConnection.connect(server.dsn(), autocommit=True) for _ in range(8)]
    started = time.monotonic()
    await asyncio.gather(*map(one, crew))
    return rows / (time.monotonic() - started)


async def ours(
    server: PostgresServer, beads: int, processes: int, kills: int
) -> tuple[Drained, float]:
    """What came of a drain, and how many beads a second were made for it."""
    with tempfile.TemporaryDirectory() as folder:
        made = PostgresStore("beads", server, Path(folder), {})
        store = made.with_secrets(dsn=server.dsn())
        try:
            adapter = await LocalStore.open(store)
            started = time.monotonic()
            await create(adapter, beads)
            speed = beads / (time.monotonic() - started)
            found = await drain(
                store, adapter, beads=beads, processes=processes, tasks=TASKS, kills=kills
            )
            return found, speed
        finally:
            await made.remove()


async def measure(runs: int, beads: int, processes: int) -> tuple[list[Claim], list[str]]:
    """The claims, and a sentence for each broken promise."""
    speeds: dict[str, list[float]] = {}
    wrong: list[str] = []
    attempts: dict[str, list[dict[int, int]]] = {}
    with running() as server:
        for _ in range(runs):
            for commits in (1, 2):
                name = f"plain SKIP LOCKED, {commits} commit{'s' if commits > 1 else ''} an item"
                speeds.setdefault(name, []).append(await plain(server, beads, processes, commits))
            speeds.setdefault("plain insert", []).append(await plain_insert(server, beads))
            for kills in (0, KILLS):
                found, created = await ours(server, beads, processes, kills)
                name = "beads external-pg" + (f", {kills} processes killed" if kills else "")
                speeds.setdefault(name, []).append(beads / found.seconds)
                speeds.setdefault("beads external-pg, create", []).append(created)
                attempts.setdefault(name, []).append(dict(found.attempts))
                wrong += [f"{name}: {sentence}" for sentence in found.wrong()]
    where = f"{beads} beads, {processes} processes of {TASKS} tasks, PostgreSQL 17 on the same machine, fsync on"
    claims = [
        Claim(name, "beads/s", samples, None, where, peer="plain insert" if "create" in name else "plain SKIP LOCKED, 2 commits an item", extra={"attempts": attempts.get(name)})
        for name, samples in speeds.items()
    ]  # fmt: skip
    return claims, wrong


def _gone(crew: list[asyncio.subprocess.Process]) -> list[asyncio.subprocess.Process]:
    """The same, all told to go."""
    for process in crew:
        _of(process.stdin).write(b"go\n")
    return crew


def _of(pipe: Any) -> Any:
    assert pipe is not None
    return pipe


def main() -> int:
    """Runs it, or is one process of the plain queue."""
    if sys.argv[1:2] == ["--plain"]:
        asyncio.run(plain_worker(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
        return 0
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=3)
    arguments.add_argument("--beads", type=int, default=BEADS)
    arguments.add_argument("--processes", type=int, default=PROCESSES)
    chosen = arguments.parse_args()
    claims, wrong = asyncio.run(measure(min(chosen.runs, 3), chosen.beads, chosen.processes))
    write_results("scale", claims)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
