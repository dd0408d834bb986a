"""Stores events in the background, and gives them to the API."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any, Final

from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.core.background.tasks import log_failures
from agentbox.mcphost.server_call import ServerCall
from agentbox.mcphost.store import McpStore, NewLine

_RECORD_LIMIT: Final = 1000
_EVENT_SECONDS: Final = 0.05  # events of this time are stored together
_MAX_WAIT: Final = 60.0  # seconds of one call that waits


class Recorder:
    """For one event loop."""

    def __init__(self, store: McpStore) -> None:
        self._store = store
        self._recorded = asyncio.Event()
        self._events: list[NewLine] = []
        self._storing: asyncio.Task[None] | None = None

    def tell(self, kind: str, data: Mapping[str, Any], call: ServerCall | None = None) -> None:
        """Stores an event in the background, with others of the moment: a call need not wait for
        the disk."""
        ids = ("", "", "") if call is None else (call.agent_id, call.session_id, call.trace_id)
        self._events.append(NewLine(kind, data, *ids))
        if self._storing is None or self._storing.done():
            self._storing = asyncio.create_task(self._store_events())
            self._storing.add_done_callback(log_failures("events of MCP servers"))

    async def read(self, after: int, wait_s: float) -> tuple[LifecycleRecord, ...]:
        """Events after `after`; waits for the first."""
        deadline = time.monotonic() + min(wait_s, _MAX_WAIT)
        while True:
            self._recorded.clear()
            rows = await self._store.read_record(after, _RECORD_LIMIT)
            remaining = deadline - time.monotonic()
            if rows or remaining <= 0:
                return tuple(LifecycleRecord.from_wire(row) for row in rows)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(remaining):
                    await self._recorded.wait()

    async def close(self) -> None:
        """Returns when all events are stored."""
        if self._storing is not None:
            await asyncio.wait({self._storing})

    async def _store_events(self) -> None:
        while self._events:
            await asyncio.sleep(_EVENT_SECONDS)
            lines, self._events = self._events, []
            await self._store.append(lines)
            self._recorded.set()
