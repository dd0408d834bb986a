"""Rows of a store that cannot be read: each is named, the rest of a listing is served, and the slot says so."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

import structlog

from agentbox.core.slot_errors import IntegrityError
from agentbox.core.storage.stored_keys import escaped

R = TypeVar("R")
T = TypeVar("T")
State = Literal["ok", "degraded", "down"]
NOTED = 16  # names that are kept
UNREADABLE = (ValueError, TypeError, KeyError, OverflowError, RecursionError)  # of JSON and times that are none
log = structlog.get_logger()


class DamagedRows:
    """What was found damaged since the store was opened."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._names: dict[str, None] = {}

    def readable(self, rows: Iterable[R], read: Callable[[R], T]) -> tuple[T, ...]:
        """Those of the rows that `read`, which raises IntegrityError, can read. The others are noted."""
        found = []
        for row in rows:
            with self.skipped():
                found.append(read(row))
        return tuple(found)

    @contextmanager
    def skipped(self) -> Iterator[None]:
        """What is done with one row: nothing where it is damaged, which is noted."""
        try:
            yield
        except IntegrityError as error:
            self._note(error.message)

    def judged(self, state: State, detail: str) -> tuple[State, str]:
        """How the store is, these rows taken into account."""
        if state != "ok" or not self._names:
            return state, detail
        return "degraded", f"rows of {self._file} cannot be read, and the log names them: {len(self._names)}"

    def _note(self, name: str) -> None:
        if name not in self._names and len(self._names) < NOTED:
            self._names[name] = None
            log.error("damaged row", file=self._file, reason=name)


def damaged_row(name: str, why: str = "its row is damaged") -> IntegrityError:
    """The error for a row that holds no record; `name` says which."""
    return IntegrityError(
        f"cannot read {escaped(name)}: {why}", hint="restore the store from a copy, or delete the row",
        segment=None, line=None, seq=None,
    )  # fmt: skip
