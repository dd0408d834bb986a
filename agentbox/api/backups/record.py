"""What is remembered of backups beside the repository: when one was tried, how it ended, which
snapshots were verified. Of the box, not of a snapshot.
"""

from datetime import datetime
from typing import Any

from agentbox.core import clock
from agentbox.core.files.atomic import read_json, replace_json
from agentbox.core.paths import Paths


class BackupRecord:
    """`backup.json` on the state volume; an unreadable one is begun anew. Blocks."""

    def __init__(self, paths: Paths) -> None:
        self._path = paths.backup_record
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
    def succeeded_at(self) -> datetime | None:
        """When the last backup was made."""
        return self._time(self._data.get("succeeded_at"))

    def verified_at(self, id: str) -> datetime | None:
        """When that snapshot was verified last, without a fault."""
        return self._time(self._verified().get(id))

    def attempted(self) -> None:
        """Raises OSError."""
        self._put(attempted_at=clock.to_wire(clock.now()))

    def succeeded(self, id: str, removed: list[str]) -> None:
        """It was verified too. Raises OSError."""
        now = clock.to_wire(clock.now())
        kept = {name: at for name, at in self._verified().items() if name not in removed}
        self._put(succeeded_at=now, verified={**kept, id: now})

    def verified(self, id: str, *, sound: bool) -> None:
        """Raises OSError."""
        rest = {name: at for name, at in self._verified().items() if name != id}
        self._put(verified={**rest, id: clock.to_wire(clock.now())} if sound else rest)

    def _verified(self) -> dict[str, Any]:
        found = self._data.get("verified")
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
