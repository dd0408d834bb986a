"""The base class of adapters whose store is one SQLite file."""

import abc

from agentbox.adapters.runtime.adapter import Adapter, Health
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.sqlite import Database


class SqliteAdapter(Adapter):
    """Times in the store are milliseconds since 1970."""

    _db: Database
    _damaged: DamagedRows

    async def health(self) -> Health:
        """Write a time and read it back."""
        state, detail = await self._db.pulse(self._now())
        return self.health_is(*self._damaged.adjust_state(state, detail))

    @abc.abstractmethod
    def _now(self) -> int: ...
