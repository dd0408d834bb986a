"""The contract suite of the memory slot: M1 to M11."""

from typing import Any

from agentbox.contracts.memory import Memory
from agentbox_testkit.contracts.common import CommonContract
from agentbox_testkit.contracts.memory_common import ENTRIES, SIZE
from agentbox_testkit.contracts.memory_entries import EntryClauses
from agentbox_testkit.contracts.memory_search import SearchClauses

OPTIONS = {
    "namespace_size": SIZE,
    "namespace_entries": ENTRIES,
    "embedder": "static-256",
}  # of the store under test


class MemoryContract(EntryClauses, SearchClauses, CommonContract):
    """The complete suite."""

    contract = Memory
    calls = {  # noqa: RUF012 - the base declares it ClassVar
        "store": (("k", 1), {}),
        "retrieve": (("k",), {}),
        "search": (("q",), {}),
        "delete": (("k",), {}),
        "list": ((), {}),
        "stats": ((), {}),
    }

    async def use(self, adapter: Any) -> list[Any]:
        entry, _ = await adapter.store("k", {"a": [1, "words"]}, metadata={"x": 1.5})
        hits = await adapter.search("words")
        return [entry, *hits, await adapter.stats(), *(await adapter.list()).items]
