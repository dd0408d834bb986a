# Written by tools/client_operations.py from agentbox/contracts.

"""Searchable entries in namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbox.client.transport import decode, decode_optional, without_none

if TYPE_CHECKING:
    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.memory import Hit, MemoryEntry, MemoryStats
    from agentbox.core.records.page import Page


class AsyncMemoryClient:
    """Searchable entries in namespaces. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def store(
        self,
        key: str,
        value: Any,
        *,
        namespace: str = "default",
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl_s: int | None = None,
    ) -> tuple[MemoryEntry, bool]:
        """Stores an entry."""
        from agentbox.contracts.memory import MemoryEntry

        response = await self._box.request(
            "store_memory",
            {"key": key, "ns": namespace},
            body={
                "value": value,
                **without_none({"text": text, "metadata": metadata, "ttl_s": ttl_s}),
            },
        )
        return decode(MemoryEntry, response), response.status_code == 201

    async def retrieve(self, key: str, *, namespace: str = "default") -> MemoryEntry | None:
        """One entry."""
        from agentbox.contracts.memory import MemoryEntry

        response = await self._box.request(
            "retrieve_memory", {"key": key, "ns": namespace}, accepted=(404,)
        )
        return decode_optional(MemoryEntry, response)

    async def delete(self, key: str, *, namespace: str = "default") -> bool:
        """Removes an entry."""
        response = await self._box.request(
            "delete_memory", {"key": key, "ns": namespace}, accepted=(404,)
        )
        return response.is_success

    async def list(
        self,
        *,
        namespace: str = "default",
        prefix: str = "",
        filter: Mapping[str, Any] | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[MemoryEntry]:
        """Entries of a namespace in order of their keys. `filter` is a filter on metadata, as
        JSON."""
        from agentbox.contracts.memory import MemoryEntry
        from agentbox.core.records.page import Page

        response = await self._box.request(
            "list_memory",
            {"ns": namespace},
            query={"prefix": prefix, "filter": filter, "limit": limit, "cursor": cursor},
        )
        return decode(Page[MemoryEntry], response)

    async def search(
        self,
        query: str,
        *,
        namespaces: Sequence[str] = ("default",),
        limit: int = 10,
        mode: str = "hybrid",
        filter: Mapping[str, Any] | None = None,
        min_cosine: float | None = None,
    ) -> tuple[Hit, ...]:
        """The entries that match a query best: by vector, by text, or by both."""
        from agentbox.contracts.memory import Hits

        response = await self._box.request(
            "search_memory",
            body={
                "query": query,
                "namespaces": namespaces,
                "limit": limit,
                "mode": mode,
                **without_none({"filter": filter, "min_cosine": min_cosine}),
            },
        )
        return decode(Hits, response).hits

    async def stats(self, namespace: str | None = None) -> MemoryStats:
        """Statistics of the store, or of one namespace."""
        from agentbox.contracts.memory import MemoryStats

        response = await self._box.request("memory_stats", query={"namespace": namespace})
        return decode(MemoryStats, response)
