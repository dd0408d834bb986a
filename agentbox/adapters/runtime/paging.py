"""How much is on a page: as many rows as were asked for, and no more bytes than a program can hold for many callers at once."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from agentbox.core.records.wire import to_json

T = TypeVar("T", bound=Sequence[Any])
R = TypeVar("R")
PAGE_BYTES: Final = 1 << 20  # about: the first row is there however large it is


class PageBudget:
    """What is left on a page."""

    def __init__(self, limit: int) -> None:
        self._rows, self._bytes = limit, PAGE_BYTES

    def admit(self, size: int) -> bool:
        """Whether a row of so many bytes belongs on it."""
        first = self._bytes == PAGE_BYTES
        self._bytes -= max(1, size)
        self._rows -= 1
        return self._rows >= 0 and (first or self._bytes >= 0)


def page_of(rows: Iterable[T], limit: int) -> tuple[list[T], bool]:
    """The rows of a table that are on a page, and whether others follow: `rows` may be any number, and is read no further."""
    page, budget = list[T](), PageBudget(limit)
    for row in rows:
        if not budget.admit(sum(len(value) for value in row if isinstance(value, str | bytes))):
            return page, True
        page.append(row)
    return page, False


def page_of_records(records: Iterable[R], limit: int) -> tuple[tuple[R, ...], bool]:
    """As `page_of`, of records that have been read."""
    page, budget = list[R](), PageBudget(limit)
    for record in records:
        if not budget.admit(len(to_json(record))):
            return tuple(page), True
        page.append(record)
    return tuple(page), False
