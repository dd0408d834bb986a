"""Rows of a store that cannot be read: each is named, the rest of a listing is served, and the slot says so."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import structlog

from agentbox.adapters.errors import IntegrityError

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

    def readable(self, rows: Iterable[tuple[Any, ...]], read: Callable[[tuple[Any, ...]], T]) -> tuple[T, ...]:
        """Those of the rows that `read`, which raises IntegrityError, can read. The others are noted."""
        found = []
        for row in rows:
            try:
                found.append(read(row))
            except IntegrityError as error:
                self._note(error.message)
        return tuple(found)

    def judged(self, state: State, detail: str) -> tuple[State, str]:
        """How the store is, these rows taken into account."""
        if state != "ok" or not self._names:
            return state, detail
        return "degraded", f"rows of {self._file} cannot be read, and the log names them: {len(self._names)}"

    def _note(self, name: str) -> None:
        if name not in self._names and len(self._names) < NOTED:
            self._names[name] = None
            log.error("damaged row", file=self._file, reason=name)


def damaged_row(name: str) -> IntegrityError:
    """The error for a row that holds no record; `name` says which."""
    return IntegrityError(
        f"cannot read {name}: its row is damaged", hint="restore the store from a copy, or delete the row",
        segment=None, line=None, seq=None,
    )  # fmt: skip
