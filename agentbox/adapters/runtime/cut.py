"""What a slot gives a backup: its part of one moment, which is staged while others write."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol, runtime_checkable

import apsw

from agentbox.core.frozen import frozen
from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.sqlite_errors import to_adapter_error
from agentbox.core.storage.sqlite_snapshot import StoreSnapshot

Stop = Callable[[], None]  # raises if the work is to end


@frozen
class StagedPart:
    """`stores`: last migration by path below the staging directory. `count`: what the slot has.
    `changed`: files that were not as the index says, by their paths.
    """

    stores: Mapping[str, int] = field(default_factory=dict)
    count: int | None = None
    changed: tuple[str, ...] = ()


class SlotCut(Protocol):
    """One moment of a slot. Used by one thread at a time: `prepare` before writes pause, `begin`
    while they do, then `stage`, and `close` in any case. All but `close` raise AdapterError.
    """

    def prepare(self) -> None: ...

    def begin(self, seconds: float) -> None:
        """Takes a few milliseconds, and fails after about `seconds`."""
        ...

    def size(self) -> int:
        """About how many bytes will be staged."""
        ...

    def stage(self, target: Path, stop: Stop) -> StagedPart:
        """Writes below `target`, the staging directory. Raises OSError too."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class JournalPart(SlotCut, Protocol):
    """The journal. `last_seq` is that of the record of the cut, set before `begin`; `epoch` is
    known from `prepare` on, `bytes` (the length of what was staged) from `stage` on.
    """

    last_seq: int
    epoch: int
    bytes: int


class SqliteCut:
    """A slot whose store is one SQLite file. `count` is a query of one number."""

    def __init__(self, path: Path, name: str, count: str, slot: str, impl: str) -> None:
        """`name` is its path below the state folder."""
        self._path, self._name, self._count = path, name, count
        self._slot, self._impl = slot, impl
        self._snapshot: StoreSnapshot | None = None

    def prepare(self) -> None:
        try:
            self._snapshot = StoreSnapshot(self._path)
        except apsw.Error as error:
            raise self._error(error) from error

    def begin(self, seconds: float) -> None:
        try:
            self.snapshot.begin(seconds)
        except apsw.Error as error:
            raise self._error(error) from error

    def size(self) -> int:
        return self.snapshot.size

    def stage(self, target: Path, stop: Stop) -> StagedPart:
        path = f"state/{self._name}"
        try:
            stop()
            self.snapshot.copy_to(target / path)
            count = int(self.snapshot.rows(self._count)[0][0])
            return StagedPart(stores={path: self.snapshot.migration}, count=count)
        except apsw.Error as error:
            raise self._error(error) from error

    def close(self) -> None:
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            snapshot.close()

    @property
    def snapshot(self) -> StoreSnapshot:
        assert self._snapshot is not None, "prepared"
        return self._snapshot

    def _error(self, error: apsw.Error) -> AdapterError:
        return to_adapter_error(error, self._path.name, self._slot, self._impl)
