"""How well a memory finds: recall and nDCG over the labelled queries of `tests/data/retrieval.json`."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "data/retrieval.json"
MODES = ("text", "vector", "hybrid")


async def store_all(adapter: Any) -> None:
    """Every entry under its key."""
    for entry in json.loads(FILE.read_text())["entries"]:
        await adapter.store(entry["key"], entry["text"])


async def quality(adapter: Any, mode: str) -> Mapping[str, Mapping[str, float]]:
    """recall@5, recall@10 and nDCG@10 of each kind of query, and of `all`. Each query has one right entry."""
    sums: dict[str, dict[str, float]] = defaultdict(
        lambda: {"recall@5": 0.0, "recall@10": 0.0, "ndcg@10": 0.0, "n": 0}
    )
    for query in json.loads(FILE.read_text())["queries"]:
        keys = [hit.entry.key for hit in await adapter.search(query["query"], mode=mode, limit=10)]
        rank = keys.index(query["key"]) + 1 if query["key"] in keys else math.inf
        for kind in (query["kind"], "all"):
            sums[kind]["n"] += 1
            sums[kind]["recall@5"] += rank <= 5
            sums[kind]["recall@10"] += rank <= 10
            sums[kind]["ndcg@10"] += 0.0 if rank == math.inf else 1 / math.log2(1 + rank)
    return {
        kind: {name: value if name == "n" else value / row["n"] for name, value in row.items()}
        for kind, row in sums.items()
    }
