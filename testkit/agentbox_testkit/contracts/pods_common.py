"""Shared helpers of the pods suite."""

import os
from typing import Any

JSON = "application/json"


async def read_body(adapter: Any, path: str, **arguments: Any) -> bytes:
    """Return the complete body of an object."""
    stored = await adapter.read(path, **arguments)
    return b"".join([chunk async for chunk in stored.body])


async def in_chunks(body: bytes, size: int) -> Any:
    """Yield a body in chunks of that size."""
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def list_paths(adapter: Any, container: str = "", limit: int = 100) -> list[str]:
    """Return the paths from `list`, over all pages."""
    paths: list[str] = []
    cursor = None
    while True:
        page = await adapter.list(container, limit=limit, cursor=cursor)
        paths += [meta.path for meta in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return paths


def descriptor_count() -> int:
    """Return the number of open descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208
