"""Who keeps branches and approvals, and telling it that somebody who may decide follows the events."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from agentbox.adapters.orchestrator.over_rpc import OverRpc
from agentbox.core.slot_errors import AdapterError, SlotUnavailable

if TYPE_CHECKING:
    from agentbox.api.services import Services

SCOPE = "approvals:write"
_RETRY_SECONDS = 0.2


def keeper(services: "Services") -> OverRpc:
    """What serves the orchestrator slot. Raises SlotUnavailable where that keeps neither."""
    serving = services.container.serving("orchestrator")
    if isinstance(serving, OverRpc) and "review" in serving.capabilities:
        return serving
    why = "cannot use reviews and approvals: nothing here keeps them"
    raise SlotUnavailable(why, slot="orchestrator", impl=serving.impl, since=None)


class Followers:
    """Counts open streams of callers that may decide; while there is one, the keeper knows."""

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._count = 0
        self._telling: asyncio.Task[None] | None = None

    def come(self) -> Callable[[], None]:
        """One more; call what is returned when it leaves."""
        self._count += 1
        if self._telling is None:
            self._telling = asyncio.ensure_future(self._tell())
        return self._leave

    def _leave(self) -> None:
        self._count -= 1
        if not self._count and self._telling is not None:
            self._telling.cancel()
            self._telling = None

    async def _tell(self) -> None:
        """Over every connection that there will be, until cancelled."""
        while True:
            with contextlib.suppress(AdapterError):
                await keeper(self._services).follow_approvals()
            await asyncio.sleep(_RETRY_SECONDS)
