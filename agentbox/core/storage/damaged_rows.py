"""Rows of a store that cannot be read: each is named, the rest of a listing is served, and the slot says so."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

import structlog

from agentbox.core.slot_errors import IntegrityError
from agentbox.core.storage.stored_keys import escape_invalid

R = TypeVar("R")
T = TypeVar("T")
State = Literal["ok", "degraded", "down"]
MAX_NAMES = 16  # names that are kept
UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    OverflowError,
    RecursionError,
)  # of JSON and times that are none
log = structlog.get_logger()


class DamagedRows:
    """What was found damaged since the store was opened."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._names: dict[str, None] = {}

    def readable_rows(self, rows: Iterable[R], read: Callable[[R], T]) -> tuple[T, ...]:
        """Those of the rows that `read`, which raises IntegrityError, can read. The others are noted."""
        results = []
        for row in rows:
            with self.skip_damaged():
                results.append(read(row))
        return tuple(results)

    @contextmanager
    def skip_damaged(self) -> Iterator[None]:
        """What is done with one row: nothing where it is damaged, which is noted."""
        try:
            yield
        except IntegrityError as error:
            self._record_damage(error.message)

    def adjust_state(self, state: State, detail: str) -> tuple[State, str]:
        """How the store is, these rows taken into account."""
        if state != "ok" or not self._names:
            return state, detail
        return (
            "degraded",
            f"rows of {self._file} cannot be read, and the log names them: {len(self._names)}",
        )

    def _record_damage(self, name: str) -> None:
        if name not in self._names and len(self._names) < MAX_NAMES:
            self._names[name] = None
            log.error("damaged row", file=self._file, reason=name)


def damaged_row(name: str, reason: str = "its row is damaged") -> IntegrityError:
    """The error for a row that holds no record; `name` says which."""
    return IntegrityError(
        f"cannot read {escape_invalid(name)}: {reason}",
        hint="restore the store from a copy, or delete the row",
        segment=None,
        line=None,
        seq=None,
    )
