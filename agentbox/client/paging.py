"""Every item of a listing, page after page: of any `list`, `ready` or `sessions` of the clients."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def every(
    listing: Callable[..., tuple[Sequence[T], str | None]], *args: Any, **options: Any
) -> Iterator[T]:
    """`every(box.beads.list, status="open")`. An item that is there throughout comes once."""
    cursor: str | None = None
    while True:
        items, cursor = listing(*args, **options, cursor=cursor)
        yield from items
        if cursor is None:
            return


async def every_async(
    listing: Callable[..., Awaitable[tuple[Sequence[T], str | None]]], *args: Any, **options: Any
) -> AsyncIterator[T]:
    """As `every`, awaited."""
    cursor: str | None = None
    while True:
        items, cursor = await listing(*args, **options, cursor=cursor)
        for item in items:
            yield item
        if cursor is None:
            return
