"""Iterates over all pages of the clients' `list`, `ready` and `sessions`."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def every(
    listing: Callable[..., tuple[Sequence[T], str | None]], *args: Any, **options: Any
) -> Iterator[T]:
    """For example `every(box.beads.list, status="open")`. Items that exist throughout are yielded
    once."""
    cursor: str | None = None
    while True:
        items, cursor = listing(*args, **options, cursor=cursor)
        yield from items
        if cursor is None:
            return


async def every_async(
    listing: Callable[..., Awaitable[tuple[Sequence[T], str | None]]], *args: Any, **options: Any
) -> AsyncIterator[T]:
    """Like `every`, asynchronously."""
    cursor: str | None = None
    while True:
        items, cursor = await listing(*args, **options, cursor=cursor)
        for item in items:
            yield item
        if cursor is None:
            return
