# Written by tools/sync_client.py from async_client/memory.py.
# Written by tools/client_operations.py from agentbox/contracts.

"""Searchable entries in namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbox.client.transport import decode, decode_optional, without_none

if TYPE_CHECKING:
    from agentbox.client.sync.request_sender import RequestSender
    from agentbox.contracts.memory import Hit, MemoryEntry, MemoryStats
    from agentbox.core.records.page import Page


class MemoryClient:
    """Searchable entries in namespaces. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: RequestSender) -> None:
        self._box = box

    def store(
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

        response = self._box.request(
            "store_memory",
            {"key": key, "ns": namespace},
            body={
                "value": value,
                **without_none({"text": text, "metadata": metadata, "ttl_s": ttl_s}),
            },
        )
        return decode(MemoryEntry, response), response.status_code == 201

    def retrieve(self, key: str, *, namespace: str = "default") -> MemoryEntry | None:
        """One entry."""
        from agentbox.contracts.memory import MemoryEntry

        response = self._box.request(
            "retrieve_memory", {"key": key, "ns": namespace}, accepted=(404,)
        )
        return decode_optional(MemoryEntry, response)

    def delete(self, key: str, *, namespace: str = "default") -> bool:
        """Removes an entry."""
        response = self._box.request(
            "delete_memory", {"key": key, "ns": namespace}, accepted=(404,)
        )
        return response.is_success

    def list(
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

        response = self._box.request(
            "list_memory",
            {"ns": namespace},
            query={"prefix": prefix, "filter": filter, "limit": limit, "cursor": cursor},
        )
        return decode(Page[MemoryEntry], response)

    def search(
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

        response = self._box.request(
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

    def stats(self, namespace: str | None = None) -> MemoryStats:
        """Statistics of the store, or of one namespace."""
        from agentbox.contracts.memory import MemoryStats

        response = self._box.request("memory_stats", query={"namespace": namespace})
        return decode(MemoryStats, response)
