"""Tells agent-host that an approver follows the events."""

import asyncio
import contextlib
from collections.abc import Callable

from agentbox.contracts.agent_host.port import AgentHost
from agentbox.core.slot_errors import AdapterError

SCOPE = "approvals:write"
_RETRY_SECONDS = 0.2


class ApproverPresence:
    """Counts open event streams of approvers; while there is one, agent-host knows."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host
        self._count = 0
        self._announcement: asyncio.Task[None] | None = None

    def connect(self) -> Callable[[], None]:
        """Registers one approver; call the result when it disconnects."""
        self._count += 1
        if self._announcement is None:
            self._announcement = asyncio.ensure_future(self._announce())
        return self._disconnect

    def _disconnect(self) -> None:
        self._count -= 1
        if not self._count and self._announcement is not None:
            self._announcement.cancel()
            self._announcement = None

    async def _announce(self) -> None:
        """Announces over each new connection, until cancelled."""
        while True:
            with contextlib.suppress(AdapterError):
                async for _ in self._host.watch_approvals():
                    continue
            await asyncio.sleep(_RETRY_SECONDS)
