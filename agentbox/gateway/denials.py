"""Reports denials to agent-host. Counts are exact, and reports are retried while the process
lives."""

import asyncio
from collections.abc import Callable
from typing import Final

from agentbox.contracts.agent_host.port import AgentHost
from agentbox.core.slot_errors import AdapterError

DenialKey = tuple[str, int, str, str]  # agent, generation, layer, rule
MAX_DETAIL: Final = 200  # characters
_BATCH_SECONDS: Final = 0.05
_RETRY_SECONDS: Final = 1.0


class DenialReporter:
    """`host` returns agent-host, or raises ConnectionError."""

    def __init__(self, host: Callable[[], AgentHost]) -> None:
        self._host = host
        self._pending: dict[DenialKey, tuple[int, str]] = {}
        self._has_pending = asyncio.Event()

    def add(self, key: DenialKey, detail: str) -> None:
        """Adds one denial. Of equal denials sent together, the last detail is kept."""
        count, _ = self._pending.get(key, (0, ""))
        self._pending[key] = (count + 1, detail[:MAX_DETAIL])
        self._has_pending.set()

    async def send(self) -> None:
        """Runs until cancelled. Failed reports are sent again."""
        while True:
            await self._has_pending.wait()
            await asyncio.sleep(_BATCH_SECONDS)
            self._has_pending.clear()
            for key in list(self._pending):
                count, detail = self._pending.pop(key)
                agent_id, _, layer, rule = key
                try:
                    await self._host().report_denial(
                        agent_id, layer=layer, rule=rule, count=count, detail=detail
                    )
                except (AdapterError, OSError):
                    self._requeue(key, count, detail)
                    await asyncio.sleep(_RETRY_SECONDS)

    def _requeue(self, key: DenialKey, count: int, detail: str) -> None:
        pending_count, pending_detail = self._pending.get(key, (0, detail))
        self._pending[key] = (pending_count + count, pending_detail)
        self._has_pending.set()
