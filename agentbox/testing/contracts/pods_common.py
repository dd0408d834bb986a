"""What the parts of the pods suite share."""

import os
from typing import Any

JSON = "application/json"


async def body_of(adapter: Any, path: str, **arguments: Any) -> bytes:
    """The whole body of an object, read to its end."""
    found = await adapter.read(path, **arguments)
    return b"".join([piece async for piece in found.body])


async def pieces(body: bytes, size: int) -> Any:
    """A body that comes in pieces of that size."""
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def paths_of(adapter: Any, container: str = "", limit: int = 100) -> list[str]:
    """The paths that `list` gives, over all its pages."""
    found: list[str] = []
    cursor = None
    while True:
        page = await adapter.list(container, limit=limit, cursor=cursor)
        found += [meta.path for meta in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


def descriptors() -> int:
    """How many descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208
