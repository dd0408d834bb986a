"""Iterates over all pages of the clients' listings."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class AnyPage(Protocol[T_co]):
    """A page of a listing; `next_cursor` is None on the last one."""

    @property
    def items(self) -> tuple[T_co, ...]: ...

    @property
    def next_cursor(self) -> str | None: ...


def every(listing: Callable[..., AnyPage[T]], *args: Any, **options: Any) -> Iterator[T]:
    """For example `every(box.beads.list, status="open")`. Items that exist throughout are yielded
    once."""
    cursor: str | None = None
    while True:
        page = listing(*args, **options, cursor=cursor)
        yield from page.items
        if (cursor := page.next_cursor) is None:
            return


async def every_async(
    listing: Callable[..., Awaitable[AnyPage[T]]], *args: Any, **options: Any
) -> AsyncIterator[T]:
    """Like `every`, asynchronously."""
    cursor: str | None = None
    while True:
        page = await listing(*args, **options, cursor=cursor)
        for item in page.items:
            yield item
        if (cursor := page.next_cursor) is None:
            return
