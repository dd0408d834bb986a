"""What is remembered of backups beside the repository: when one was tried, how it ended, which
snapshots were verified. Of the box, not of a snapshot.
"""

import threading
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from agentbox.core import clock
from agentbox.core.files.atomic import read_json, replace_json
from agentbox.core.paths import Paths

MAX_FAULTS: Final = 10  # of a snapshot
_BY_SNAPSHOT: Final = ("verified", "read", "damaged")


class BackupRecord:
    """`backup.json` on the state volume; an unreadable one is begun anew. Blocks. Thread-safe: a
    backup may be made while another is verified.
    """

    def __init__(self, paths: Paths) -> None:
        self._path, self._lock = paths.backup_record, threading.Lock()
        try:
            stored = read_json(self._path)
        except (ValueError, OSError):
            stored = None
        self._data: dict[str, Any] = stored if isinstance(stored, dict) else {}

    @property
    def attempted_at(self) -> datetime | None:
        """When a backup was begun last, or the schedule was first seen."""
        return self._time(self._data.get("attempted_at"))

    @property
    def since(self) -> datetime | None:
        """When the first backup was begun, or the schedule was first seen."""
        return self._time(self._data.get("since")) or self.attempted_at

    @property
    def succeeded_at(self) -> datetime | None:
        """When the last backup was made."""
        return self._time(self._data.get("succeeded_at"))

    def verified_at(self, id: str) -> datetime | None:
        """When that snapshot was verified last, without a fault."""
        return self._time(self._rows("verified").get(id))

    @property
    def checked_at(self) -> datetime | None:
        """When the work of a day was done last."""
        return self._time(self._data.get("checked_at"))

    @property
    def credit(self) -> float:
        """Which share of the repository may be read before more of it is due; below 0 after a
        snapshot that is larger than the share of a day.
        """
        found = self._data.get("credit")
        return float(found) if isinstance(found, (int, float)) else 0.0

    def read_at(self, id: str) -> datetime | None:
        """When that snapshot was verified last, with whatever result."""
        return self._time(self._rows("read").get(id))

    def faults(self, id: str) -> tuple[str, ...]:
        """What the last verification of that snapshot found."""
        found = self._rows("damaged").get(id)
        return tuple(map(str, found)) if isinstance(found, list) else ()

    @property
    def damaged_count(self) -> int:
        """How many snapshots had a fault when they were verified last."""
        return len(self._rows("damaged"))

    @property
    def known(self) -> frozenset[str]:
        """The snapshots of which something is recorded."""
        return frozenset(id for name in _BY_SNAPSHOT for id in self._rows(name))

    def checked(self, credit: float, gone: Collection[str]) -> None:
        """The work of a day is done; `gone` are snapshots that are no more. Raises OSError."""
        with self._lock:
            kept = {
                name: {id: row for id, row in self._rows(name).items() if id not in gone}
                for name in _BY_SNAPSHOT
            }
            self._put(checked_at=clock.to_wire(clock.now()), credit=round(credit, 6), **kept)

    def attempted(self) -> None:
        """Raises OSError."""
        with self._lock:
            now = clock.to_wire(clock.now())
            since = self.since
            self._put(attempted_at=now, since=now if since is None else clock.to_wire(since))

    def succeeded(self, id: str, removed: list[str]) -> None:
        """It was verified too. Raises OSError."""
        with self._lock:
            now = clock.to_wire(clock.now())
            verified, read, damaged = (
                {name: row for name, row in self._rows(kind).items() if name not in removed}
                for kind in _BY_SNAPSHOT
            )
            self._put(
                succeeded_at=now,
                verified={**verified, id: now},
                read={**read, id: now},
                damaged=damaged,
            )

    def verified(self, id: str, faults: Sequence[str]) -> None:
        """Raises OSError."""
        with self._lock:
            now = clock.to_wire(clock.now())
            verified, read, damaged = (
                {name: row for name, row in self._rows(kind).items() if name != id}
                for kind in _BY_SNAPSHOT
            )
            if faults:
                damaged[id] = list(faults[:MAX_FAULTS])
            else:
                verified[id] = now
            self._put(verified=verified, read={**read, id: now}, damaged=damaged)

    def _rows(self, name: str) -> dict[str, Any]:
        found = self._data.get(name)
        return found if isinstance(found, dict) else {}

    def _put(self, **values: Any) -> None:
        self._data = {**self._data, **values}
        replace_json(self._path, self._data, mode=0o600)

    @staticmethod
    def _time(text: Any) -> datetime | None:
        try:
            return clock.from_wire(text) if isinstance(text, str) else None
        except ValueError:
            return None
