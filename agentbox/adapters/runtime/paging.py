"""Page size: at most the requested number of rows, limited in bytes so that many callers can be
served at once."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from agentbox.core.records.wire import to_json

T = TypeVar("T", bound=Sequence[Any])
R = TypeVar("R")
PAGE_BYTES: Final = 1 << 20  # approximate; the first row is always included


class PageBudget:
    """The remaining capacity of a page."""

    def __init__(self, limit: int) -> None:
        self._rows, self._bytes = limit, PAGE_BYTES

    def admit(self, size: int) -> bool:
        """Return whether a row of this size fits on the page."""
        first = self._bytes == PAGE_BYTES
        self._bytes -= max(1, size)
        self._rows -= 1
        return self._rows >= 0 and (first or self._bytes >= 0)


def page_of(rows: Iterable[T], limit: int) -> tuple[list[T], bool]:
    """Return the rows of the page and whether more follow. `rows` is not read beyond the page."""
    page, budget = list[T](), PageBudget(limit)
    for row in rows:
        if not budget.admit(sum(len(value) for value in row if isinstance(value, str | bytes))):
            return page, True
        page.append(row)
    return page, False


def page_of_records(records: Iterable[R], limit: int) -> tuple[tuple[R, ...], bool]:
    """Like `page_of`, for decoded records."""
    page, budget = list[R](), PageBudget(limit)
    for record in records:
        if not budget.admit(len(to_json(record))):
            return tuple(page), True
        page.append(record)
    return tuple(page), False
