"""Passes the reports of agent-host's canaries to `/ready`."""

import asyncio
from collections.abc import Callable

from agentbox.client.agent_host.connection import open_agent_host
from agentbox.contracts.agent_host.canaries import CanaryReport
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError

_WAIT_SECONDS = 30.0
_RETRY_SECONDS = 1.0


class SandboxCanaryWatcher:
    """The last report, None before the first. It uses its own connection, so that a slow or failed
    slot hides nothing.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._subscribers: list[Callable[[], None]] = []
        self.report: CanaryReport | None = None

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Calls `changed` after each new report."""
        self._subscribers.append(changed)

    async def follow(self) -> None:
        """Runs until cancelled. For a box whose agents are its own processes."""
        while True:
            try:
                async with open_agent_host(self._paths) as host:
                    while True:
                        after = self.report.revision if self.report else -1
                        self._update(await host.read_canaries(after, wait_s=_WAIT_SECONDS))
            except AdapterError:
                await asyncio.sleep(_RETRY_SECONDS)

    def _update(self, report: CanaryReport) -> None:
        if report.at is not None and report != self.report:
            self.report = report
            for changed in self._subscribers:
                changed()
