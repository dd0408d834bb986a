"""Memory over HTTP, where more is done than the slot's call."""

from typing import Literal

from agentbox.contracts.memory import Hits, Memory, MemoryEntry
from agentbox.core.records.wire import JsonObj
from agentbox.core.slot_errors import NotFound


class MemoryHandlers:
    """A missing entry is 404."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def retrieve(self, key: str, namespace: str) -> MemoryEntry:
        entry = await self._memory.retrieve(key, namespace=namespace)
        if entry is None:
            raise _unknown(key)
        return entry

    async def delete(self, key: str, namespace: str) -> None:
        if not await self._memory.delete(key, namespace=namespace):
            raise _unknown(key)

    async def search(
        self,
        query: str,
        namespaces: tuple[str, ...],
        limit: int,
        mode: Literal["hybrid", "vector", "text"],
        filter: JsonObj,
        min_cosine: float | None,
    ) -> Hits:
        """The response reveals nothing about entries that the query does not match."""
        hits = await self._memory.search(
            query,
            namespaces=namespaces,
            limit=limit,
            mode=mode,
            filter=filter,
            min_cosine=min_cosine,
        )
        return Hits(hits=hits)


def _unknown(key: str) -> NotFound:
    return NotFound("cannot find this entry", resource="memory", id=key)
