"""Memory of both classes at 1,000, 10,000 and 100,000 entries, beside usearch and a raw pgvector query; and how well each finds.

`python bench/memory.py [--runs N] [--sizes 1000,10000,100000]`. Texts, queries and vectors are the same for all. Concurrency 1,
20 warm-ups. The classes are called as adapters, without the pipeline around them; a query is embedded anew in each call.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/peers"))

import numpy as np
import psycopg
from agentbox_testkit.local_store import LocalStore
from measure import Claim, write_results
from memory_fill import fill, texts
from postgres_server import PostgresServer, running
from postgres_store import PostgresStore
from retrieval import MODES, quality, store_all
from usearch.index import Index

from agentbox.adapters.memory.embedder import load_embedder
from agentbox.adapters.memory.postgres import word_index as pg_words
from agentbox.adapters.memory.postgres.rows import vector_text
from agentbox.adapters.memory.sqlite import word_index as sqlite_words

OPTIONS = {"namespace_entries": 1_000_000, "namespace_size": 8 << 30}
WARM_UP, HITS = 20, 10
PEERS = {"local-sqlite": "usearch exact", "external-pg": "raw pgvector HNSW"}
LOCAL, EXTERNAL = (
    (25.0, 50.0),
    (250.0, 500.0),
)  # p95 of search and of store in ms, at 10,000 entries
HYBRID = {
    "local-sqlite": 25.0,
    "external-pg": 40.0,
}  # p95 of a hybrid search in ms, at 100,000 entries
BY_SQL = 100_000  # entries from which on words that are held in memory are measured beside SQL's


async def timed(
    call: Callable[[str], Awaitable[Any]], queries: Sequence[str], warm_up: int = WARM_UP
) -> list[float]:
    """Milliseconds of each call after the warm-up."""
    samples = []
    for number, query in enumerate(queries):
        started = time.perf_counter()
        await call(query)
        if number >= warm_up:
            samples.append((time.perf_counter() - started) * 1000)
    return samples


async def of_class(
    name: str, adapter: Any, size: int, queries: Sequence[str], bounds: tuple[float, float]
) -> list[Claim]:
    """Search in each mode, a search with a filter that keeps 1 %, and store."""
    peer = f"{PEERS[name]} {size}"
    where, held = (
        f"{size} entries in one namespace, limit {HITS}",
        bounds if size == 10_000 else (None, None),
    )
    claims = []
    for mode in MODES:
        samples = await timed(
            lambda query, mode=mode: adapter.search(query, mode=mode, limit=HITS), queries
        )
        bound = HYBRID[name] if (mode, size) == ("hybrid", 100_000) else held[0]
        claims.append(Claim(f"{name} {mode} {size}", "ms", samples, bound, where, peer=peer))
    narrow = {"n": {"lt": size // 100}}
    samples = await timed(lambda query: adapter.search(query, limit=HITS, filter=narrow), queries)
    claims.append(
        Claim(f"{name} hybrid, 1 % filter {size}", "ms", samples, held[0], where, peer=peer)
    )
    samples = await timed(lambda query: adapter.store(f"new {query}", query), queries)
    claims.append(Claim(f"{name} store {size}", "ms", samples, held[1], where))
    if size >= BY_SQL:
        with words_by_sql():
            samples = await timed(lambda query: adapter.search(query, limit=HITS), queries)
        claims.append(
            Claim(
                f"{name} hybrid, words by SQL {size}",
                "ms",
                samples,
                None,
                f"{where}, no words in memory",
            )
        )
    return claims


@contextlib.contextmanager
def words_by_sql() -> Iterator[None]:
    """Every store is too large to hold its words in memory."""
    modules = {module: module.MAX_ENTRIES for module in (sqlite_words, pg_words)}
    for module in modules:
        module.MAX_ENTRIES = -1
    try:
        yield
    finally:
        for module, most in modules.items():
            module.MAX_ENTRIES = most


async def beside(db: Any, size: int, lines: Sequence[str], queries: Sequence[str]) -> list[Claim]:
    """What a user would pick instead, with the same embedder: usearch in this process, and one statement of pgvector."""
    embedder = await load_embedder("static-256")
    vectors = np.frombuffer(b"".join(await embedder.embed(lines)), dtype="<f4").reshape(size, 256)
    index = Index(ndim=256, metric="cos", connectivity=16, expansion_add=128, expansion_search=64)
    index.add(np.arange(size), vectors)

    async def vector(query: str) -> bytes:
        (found,) = await embedder.embed([query])
        return found

    async def graph(query: str) -> None:
        index.search(np.frombuffer(await vector(query), dtype="<f4"), HITS)

    async def exact(query: str) -> None:
        index.search(np.frombuffer(await vector(query), dtype="<f4"), HITS, exact=True)

    async def raw(query: str) -> None:
        near = vector_text(await vector(query))
        await (
            await db.execute(
                "SELECT key, value FROM entries ORDER BY vector <=> %s::vector LIMIT 10", (near,)
            )
        ).fetchall()

    where = f"{size} vectors, limit {HITS}, embedding included"
    return [
        Claim(f"{name} {size}", "ms", await timed(call, queries), None, where)
        for name, call in (("usearch HNSW", graph), ("usearch exact", exact), ("raw pgvector HNSW", raw), ("embedding alone", vector))
    ]  # fmt: skip


async def at_size(server: PostgresServer, folder: Path, size: int, runs: int) -> list[Claim]:
    """Every claim at one size."""
    lines, queries = texts(size), texts(runs + WARM_UP, seed=99)
    local = LocalStore("memory", "local-sqlite", folder / str(size), options=OPTIONS)
    shared = PostgresStore("memory", server, folder, OPTIONS)
    shared.with_secrets(dsn=server.dsn())
    try:
        adapter = await local.open()
        numbered = iter(enumerate(lines))
        await asyncio.gather(*(_store(adapter, numbered) for _ in range(64)))
        claims = await of_class("local-sqlite", adapter, size, queries, LOCAL)
        adapter = await LocalStore.open(shared)
        with shared.session() as db:
            await fill(db, lines)
        path = f"-c search_path={shared.schema},public"
        async with await psycopg.AsyncConnection.connect(
            server.dsn(options=path), autocommit=True
        ) as plain:
            claims += await beside(plain, size, lines, queries)
        return claims + await of_class("external-pg", adapter, size, queries, EXTERNAL)
    finally:
        await local.close_all()
        await shared.remove()


async def _store(adapter: Any, numbered: Iterator[tuple[int, str]]) -> None:
    for number, line in numbered:
        await adapter.store(f"{number}", None, text=line, metadata={"n": number})


async def finding(server: PostgresServer, folder: Path) -> list[Claim]:
    """recall@10 over the labelled queries; the other measures are beside it."""
    claims = []
    shared = PostgresStore("memory", server, folder, {})
    shared.with_secrets(dsn=server.dsn())
    for store in (LocalStore("memory", "local-sqlite", folder / "finding"), shared):
        adapter = await LocalStore.open(store)
        await store_all(adapter)
        for mode in MODES:
            found = await quality(adapter, mode)
            name = f"{store.cfg.use} {mode} recall@10"
            where = "tests/data/retrieval.json: 500 definitions, 200 queries of four kinds"
            claims.append(
                Claim(
                    name, "of 1", [found["all"]["recall@10"]], None, where, extra={"by_kind": found}
                )
            )
        await store.close_all()
    await shared.remove()
    return claims


async def measure(sizes: Sequence[int], runs: int) -> list[Claim]:
    """All of it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, running() as server:
        claims = await finding(server, Path(folder))
        for size in sizes:
            claims += await at_size(server, Path(folder), size, runs)
        return claims


def main() -> int:
    """Exit 1 on a missed bound of `LOCAL`, `EXTERNAL` or `HYBRID`."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--runs", type=int, default=200, help="counted calls of each operation; at least 200"
    )
    arguments.add_argument("--sizes", default="1000,10000,100000")
    chosen = arguments.parse_args()
    claims = asyncio.run(
        measure([int(size) for size in chosen.sizes.split(",")], max(chosen.runs, 200))
    )
    write_results("memory", claims)
    return int(
        any(
            claim.must_p95 is not None and claim.summary()["p95"] > claim.must_p95
            for claim in claims
        )
    )


if __name__ == "__main__":
    sys.exit(main())
