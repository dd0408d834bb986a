"""The spool entry of a running task."""

import asyncio
from dataclasses import replace
from typing import Any

import structlog

from agentbox.api.tasks.spool import Spool, SpoolEntry

_log = structlog.get_logger()


class StoredEntry:
    """An entry in memory and in the spool. `entry` has every change at once."""

    def __init__(self, entry: SpoolEntry, spool: Spool) -> None:
        self.entry = entry
        self._spool = spool
        self._removed = False  # it must not be written again
        self._saving = asyncio.Lock()

    async def update(self, **changes: Any) -> None:
        """Changes the entry immediately, and returns when the spool has stored it. Concurrent
        changes are merged.

        A failed write does not end the run: the request id was stored before the claim, and gives
        the same agent again after a crash.
        """
        self.entry = replace(self.entry, **changes)
        async with self._saving:
            if self._removed:
                return
            try:
                await self._spool.save(self.entry)
            except OSError as error:
                self._log_failure("spool entry not written", error)

    async def remove(self) -> None:
        """Removes the entry. If that fails, the next start finds its bead closed and removes it."""
        async with self._saving:
            self._removed = True
            try:
                await self._spool.remove(self.entry.ref)
            except OSError as error:
                self._log_failure("spool entry not removed", error)

    def _log_failure(self, event: str, error: OSError) -> None:
        _log.error(event, task_id=self.entry.task_id, reason=str(error))
