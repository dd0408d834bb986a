"""Memory of `local-sqlite` at 1,000,000 entries: 20,000 texts, and 49 copies of each with a word of its own.

`python bench/memory_million.py [--runs N]`. The copies are made in SQL; the texts and queries are made as in `bench/memory.py`. The
vectors are more than what is held in memory, so that each search by vector scans them. `external-pg` is not measured at this size:
its graph of a million vectors takes longer to build than all the rest.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/peers"))

import apsw
from agentbox_testkit.local_store import LocalStore
from measure import Claim, write_results
from memory import HITS, OPTIONS, _store, timed
from memory_fill import texts

TEXTS, COPIES = 20_000, 49
WARM_UP = 2
WHERE = f"{TEXTS * (COPIES + 1)} entries in one namespace, limit {HITS}"


async def claims_of(name: str, adapter: Any, mode: str, runs: int) -> list[Claim]:
    """The first search of all, and those after the warm-up."""
    queries = texts(1 + WARM_UP + runs, seed=99)

    def search(query: str) -> Awaitable[Any]:
        return adapter.search(query, mode=mode, limit=HITS)  # type: ignore[no-any-return]

    first = await timed(search, queries[:1], warm_up=0)
    return [
        Claim(f"{name} {mode} 1000000, first", "ms", first, None, WHERE),
        Claim(
            f"{name} {mode} 1000000",
            "ms",
            await timed(search, queries[1:], warm_up=WARM_UP),
            None,
            WHERE,
        ),
    ]


async def of_sqlite(folder: Path, runs: int) -> list[Claim]:
    """In each mode."""
    local = LocalStore("memory", "local-sqlite", folder, options=OPTIONS)
    adapter = await local.open()
    numbered = iter(enumerate(texts(TEXTS)))
    await asyncio.gather(*(_store(adapter, numbered) for _ in range(64)))
    await local.close_all()
    db = apsw.Connection(str(local.directory / "memory.db"))
    db.execute("PRAGMA synchronous = OFF; UPDATE stamps SET last = last + 1")
    for copy in range(1, COPIES + 1):
        more = copy * TEXTS
        db.execute(
            "INSERT INTO entries (id, namespace, key, value, text, metadata, bytes, created_at, updated_at) "
            f"SELECT id + {more}, namespace, key || '-{copy}', value, text || ' m' || id || 'x{copy}', metadata, bytes, 0, 0 "
            f"FROM entries WHERE id <= {TEXTS}"
        )
        db.execute(
            f"INSERT INTO words_of (rowid, text) SELECT id, text FROM entries WHERE id > {more}"
        )
        db.execute(
            f"INSERT INTO vectors SELECT entry + {more}, vector, (SELECT last FROM stamps) FROM vectors WHERE entry <= {TEXTS}"
        )
    db.execute(
        "UPDATE namespaces SET (entries, bytes) = (SELECT count(*), sum(bytes) FROM entries)"
    )
    db.close()
    adapter = await local.open()
    try:
        return [
            claim
            for mode in ("text", "vector", "hybrid")
            for claim in await claims_of("local-sqlite", adapter, mode, runs)
        ]
    finally:
        await local.close_all()


async def measure(runs: int) -> list[Claim]:
    """All of it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        return await of_sqlite(Path(folder), runs)


def main() -> int:
    """Holds no bound."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=12, help="counted calls of each operation")
    write_results("memory_million", asyncio.run(measure(arguments.parse_args().runs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
