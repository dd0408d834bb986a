"""The page of a listing."""

from typing import Generic, TypeVar

from agentbox.core.records.wire import Record, record

T = TypeVar("T")


@record
class Page(Record, Generic[T]):
    """One page of a keyset listing. `next_cursor` is None on the last page."""

    items: tuple[T, ...]
    next_cursor: str | None = None
