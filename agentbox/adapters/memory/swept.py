"""The base class of memory stores: removes expired entries in the background."""

import abc
import asyncio
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from agentbox.adapters.memory.embedder import LazyEmbedder
from agentbox.adapters.runtime.adapter import Adapter, Deps, SlotConfig
from agentbox.core.slot_errors import AdapterError
from agentbox.manifest.slot_options import MemoryOptions

SWEEP_SECONDS = 30.0  # expired entries are invisible at once and removed within 60 s


class EntryDatabase(Protocol):
    """The database of the entries."""

    async def close(self) -> None: ...


D = TypeVar("D", bound=EntryDatabase)


class SweptMemory(Adapter, Generic[D]):
    """`open` of a subclass sets `_embedder` and starts `_sweep`."""

    _db: D

    def __init__(self, cfg: SlotConfig[MemoryOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._embedder: LazyEmbedder | None = None
        self._sweeper: asyncio.Task[None] | None = None

    async def close(self) -> None:
        sweeper, self._sweeper, embedder, self._embedder = self._sweeper, None, self._embedder, None
        if sweeper is not None:
            sweeper.cancel()
            await asyncio.wait({sweeper})
        if embedder is not None:
            await embedder.close()
        await self._db.close()

    async def _sweep(self) -> None:
        await self.deps.may_send()  # a held box removes nothing
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            with suppress(AdapterError):  # reported by health; the next round retries
                await self._remove_expired()

    @abc.abstractmethod
    async def _remove_expired(self) -> None: ...
