"""Calls of the slots during a run, which outlast a slot that is unavailable."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import structlog

from agentbox.api.tasks.run_exceptions import (
    DeferredToNextBoot,
    OutboxCall,
    StoredInOutbox,
    store_result,
)
from agentbox.api.tasks.stored_entry import StoredEntry
from agentbox.core.slot_errors import AdapterError, QuotaExceeded

if TYPE_CHECKING:
    from agentbox.adapters.runtime.slots import Slots
    from agentbox.mesh.outbox.outbox import Outbox

T = TypeVar("T")
RETRY_SECONDS = (0.1, 2.0)  # first and longest pause while a slot is unavailable
_log = structlog.get_logger()


class SlotRetry:
    """Repeats calls of a task. Set `draining` during a shutdown: calls are then not repeated."""

    def __init__(self, stored: StoredEntry, slots: "Slots", outbox: "Outbox | None") -> None:
        self._stored, self._slots, self._outbox = stored, slots, outbox
        self.draining = False

    async def __call__(
        self,
        call: Callable[[], Awaitable[T]],
        *,
        full_store: bool = False,
        fallback: OutboxCall | None = None,
    ) -> T:
        """Repeats a call while the slot is unavailable, and with `full_store` while it is full.
        Other errors are raised. With the slot down `fallback` goes into the outbox, then
        StoredInOutbox is raised. Raises DeferredToNextBoot during a shutdown.
        """
        pause, longest = RETRY_SECONDS
        while True:
            try:
                return await call()
            except AdapterError as error:
                if not (error.retryable or (full_store and isinstance(error, QuotaExceeded))):
                    raise
                entry = self._stored.entry
                if fallback is not None and await store_result(
                    self._outbox, self._slots, entry, *fallback
                ):
                    raise StoredInOutbox from error
                if self.draining:
                    raise DeferredToNextBoot(error.message) from error
                _log.info("slot unavailable, retrying", task_id=entry.task_id, reason=error.message)
            await asyncio.sleep(pause)
            pause = min(pause * 2, longest)
