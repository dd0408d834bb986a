"""Shared helpers of the memory suite."""

from typing import Any

SIZE, ENTRIES = 64 << 10, 260  # quotas of a namespace, in every store of this suite


async def search_keys(adapter: Any, query: str, **arguments: Any) -> list[str]:
    """Return the keys of the hits, best first."""
    return [hit.entry.key for hit in await adapter.search(query, **arguments)]


async def list_keys(adapter: Any, **arguments: Any) -> list[str]:
    """Return the keys from `list`, over all pages."""
    keys: list[str] = []
    cursor = None
    while True:
        page = await adapter.list(cursor=cursor, **arguments)
        keys += [entry.key for entry in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return keys
