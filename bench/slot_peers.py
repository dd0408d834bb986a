"""What a user would pick instead of a slot, measured in the same run on the same disk and server."""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psycopg
from measure import Claim
from slot_calls import OBJECT
from slot_rooms import Room

CALLS, WARM_UP = 1000, 100
_LINE = b"x" * 1023 + b"\n"


def timed(name: str, call: Callable[[int], object], conditions: str) -> Claim:
    """Milliseconds of each call, one after another."""
    samples = []
    for number in range(WARM_UP + CALLS):
        started = time.perf_counter()
        call(number)
        if number >= WARM_UP:
            samples.append((time.perf_counter() - started) * 1000)
    return Claim(
        name,
        "ms",
        samples,
        None,
        conditions,
        extra={"per_second": 1000 * len(samples) / sum(samples)},
    )


def on_disk(folder: Path) -> list[Claim]:
    """A table of sqlite3 (WAL, full sync), a file that is appended to, files of 16 KiB, and a process."""
    db = sqlite3.connect(folder / "plain.db", isolation_level=None)
    db.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)"
    )
    journal, body = (
        os.open(folder / "plain.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        os.urandom(OBJECT),
    )

    def append(_number: int) -> None:
        os.write(journal, _LINE)
        os.fdatasync(journal)

    def put(number: int) -> None:
        path = folder / f"object-{number % 100}"
        with path.with_suffix(".new").open("wb") as file:
            file.write(body)
            os.fsync(file.fileno())
        path.with_suffix(".new").rename(path)

    claims = [
        timed("beside: sqlite3 insert", lambda n: db.execute("INSERT INTO t VALUES (?, ?)", (n, "b" * 200)), "one row, one commit"),
        timed("beside: sqlite3 select", lambda n: db.execute("SELECT * FROM t WHERE id = ?", (n,)).fetchone(), "by its key"),
        timed("beside: file append and fdatasync", append, "1 KiB a line"),
        timed("beside: file write, fsync, rename", put, "16 KiB"),
        timed("beside: file read", lambda n: (folder / f"object-{n % 100}").read_bytes(), "16 KiB"),
        timed("beside: posix_spawn", lambda _n: os.waitpid(os.posix_spawn("/bin/true", ["/bin/true"], {}), 0), "to its exit"),
    ]  # fmt: skip
    db.close()
    os.close(journal)
    return claims


def on_server(room: Room) -> list[Claim]:
    """What the server behind the slot does when it is asked plainly, over one connection."""
    if room.solid is not None:
        with httpx.Client(trust_env=False, base_url=f"{room.solid.url}/plain/") as client:
            head, body = {"Content-Type": "application/octet-stream"}, os.urandom(OBJECT)
            return [
                timed("beside pods: PUT to the Solid server", lambda n: client.put(f"{n % 100}", content=body, headers=head), "16 KiB"),
                timed("beside pods: GET from the Solid server", lambda n: client.get(f"{n % 100}"), "16 KiB"),
            ]  # fmt: skip
    if room.server is None:
        return []
    path = "-c search_path=agentbox_memory,public"
    with psycopg.connect(room.server.dsn(options=path), autocommit=True) as db:
        db.execute("CREATE TABLE public.plain (id int PRIMARY KEY, body text)")
        insert = "INSERT INTO public.plain VALUES (%s, %s)"
        claims = [
            timed(f"beside {room.slot}: PostgreSQL insert", lambda n: db.execute(insert, (n, "b" * 200)), "one row, one commit"),
            timed(f"beside {room.slot}: PostgreSQL select", lambda n: db.execute("SELECT * FROM public.plain WHERE id = %s", (n,)).fetchone(), "by its key"),
        ]  # fmt: skip
        if room.slot == "memory":
            (vectors,) = zip(
                *db.execute("SELECT vector::text FROM entries LIMIT 100").fetchall(), strict=True
            )
            near = "SELECT key, value FROM entries ORDER BY vector <=> %s::vector LIMIT 10"
            claims.append(
                timed("beside memory: raw pgvector HNSW", lambda n: db.execute(near, (vectors[n % 100],)).fetchall(), "10 of 10,000, nothing else")
            )  # fmt: skip
        return claims
