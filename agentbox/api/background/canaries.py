"""Passes the reports of agent-host's canaries to `/ready`."""

import asyncio

from agentbox.api.parts import ApiParts
from agentbox.client.agent_host.connection import open_agent_host
from agentbox.contracts.agent_host.canaries import CanaryReport
from agentbox.core.slot_errors import AdapterError

_WAIT_SECONDS = 30.0
_RETRY_SECONDS = 1.0


class CanaryWatcher:
    """The last report, None before the first. It uses its own connection, so that a slow or failed
    slot hides nothing.
    """

    def __init__(self) -> None:
        self.report: CanaryReport | None = None

    async def follow(self, services: ApiParts) -> None:
        """Runs until cancelled. For a box whose agents are its own processes."""
        while True:
            try:
                async with open_agent_host(services.paths) as host:
                    while True:
                        after = self.report.revision if self.report else -1
                        report = await host.read_canaries(after, wait_s=_WAIT_SECONDS)
                        self._update(services, report)
            except AdapterError:
                await asyncio.sleep(_RETRY_SECONDS)

    def _update(self, services: ApiParts, report: CanaryReport) -> None:
        if report.at is not None and report != self.report:
            self.report = report
            services.evaluator.wake("sandbox")
