"""Unreadable rows of a store: each is logged, listings skip it, and the slot reports it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

import structlog

from agentbox.core.slot_errors import IntegrityError
from agentbox.core.storage.invalid_utf8_keys import escape_invalid

R = TypeVar("R")
T = TypeVar("T")
State = Literal["ok", "degraded", "down"]
MAX_NAMES = 16  # names that are stored
UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    OverflowError,
    RecursionError,
)  # raised for invalid JSON and times
log = structlog.get_logger()


class DamagedRows:
    """Damaged rows found since the store was opened."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._names: dict[str, None] = {}

    def readable_rows(self, rows: Iterable[R], read: Callable[[R], T]) -> tuple[T, ...]:
        """The rows that `read` can read; it raises IntegrityError for others, which are
        recorded.
        """
        results = []
        for row in rows:
            with self.skip_damaged():
                results.append(read(row))
        return tuple(results)

    @contextmanager
    def skip_damaged(self) -> Iterator[None]:
        """Skips and records one row if it raises IntegrityError."""
        try:
            yield
        except IntegrityError as error:
            self._record_damage(error.message)

    def adjust_state(self, state: State, detail: str) -> tuple[State, str]:
        """The state of the store, including damaged rows."""
        if state != "ok" or not self._names:
            return state, detail
        return (
            "degraded",
            f"unreadable rows of {self._file}, listed in the log: {len(self._names)}",
        )

    def _record_damage(self, name: str) -> None:
        if name not in self._names and len(self._names) < MAX_NAMES:
            self._names[name] = None
            log.error("damaged row", file=self._file, reason=name)


def damaged_row(name: str, reason: str = "its row is damaged") -> IntegrityError:
    """The error for an unreadable row; `name` identifies it."""
    return IntegrityError(
        f"cannot read {escape_invalid(name)}: {reason}",
        hint="restore the store from a copy, or delete the row",
        segment=None,
        line=None,
        seq=None,
    )
