"""The host of reviews and approvals, and telling it that an approver follows the events."""

import asyncio
import contextlib
from collections.abc import Callable

from agentbox.adapters.orchestrator.over_rpc import RpcOrchestrator
from agentbox.adapters.runtime.slots import Slots
from agentbox.core.slot_errors import AdapterError, SlotUnavailable

SCOPE = "approvals:write"
_RETRY_SECONDS = 0.2


def agent_host(slots: Slots) -> RpcOrchestrator:
    """The adapter of the orchestrator slot. Raises SlotUnavailable without reviews and
    approvals.
    """
    serving = slots.serving("orchestrator")
    if isinstance(serving, RpcOrchestrator) and "review" in serving.capabilities:
        return serving
    reason = "cannot use reviews and approvals: this orchestrator does not provide them"
    raise SlotUnavailable(reason, slot="orchestrator", impl=serving.impl, since=None)


class ApproverPresence:
    """Counts open event streams of approvers; while there is one, agent-host knows."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
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
                await agent_host(self._slots).watch_approvals()
            await asyncio.sleep(_RETRY_SECONDS)
