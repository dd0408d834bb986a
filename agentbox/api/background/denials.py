"""Denials of agents in `/metrics`, as counted by the agent host."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from agentbox.adapters.orchestrator.over_rpc import RpcOrchestrator
from agentbox.contracts.agent_host.denials import DenialCounts
from agentbox.core.slot_errors import AdapterError, SlotUnavailable

if TYPE_CHECKING:
    from agentbox.api.services import Services

CAPABILITY = "denials"
_WAIT_SECONDS = 30.0  # for one request
_PAUSE_SECONDS = 0.2  # between two requests, so that many denials do not cause many requests
_RETRY_SECONDS = 1.0
_EMPTY = DenialCounts(revision=-1, totals=())


class DenialMetrics(Collector):
    """The last counts, kept while the host is down. They restart from 0 with the host."""

    counts = _EMPTY

    def collect(self) -> Iterator[CounterMetricFamily]:
        """One family, by agent, class, layer and rule."""
        family = CounterMetricFamily(
            "agentbox_denied",
            "Denials of agent processes",
            labels=("agent", "class", "layer", "rule"),
        )
        for row in self.counts.totals:
            family.add_metric((row.agent, row.denial_class, row.layer, row.rule), row.count)
        yield family


async def follow_denials(services: "Services") -> None:
    """Updates the metrics until cancelled. A request is always pending on the connection, so a lost
    connection is noticed before the next caller needs the slot.
    """
    metrics = services.metrics.denials
    while True:
        try:
            serving = services.slots.serving("orchestrator")
            if not (isinstance(serving, RpcOrchestrator) and CAPABILITY in serving.capabilities):
                await asyncio.sleep(_WAIT_SECONDS if serving.impl == "off" else _RETRY_SECONDS)
                continue
            metrics.counts = await serving.read_denials(metrics.counts.revision, _WAIT_SECONDS)
            await asyncio.sleep(_PAUSE_SECONDS)
        except AdapterError as error:
            if isinstance(error, SlotUnavailable):
                services.slots.request_health_check("orchestrator")
            await asyncio.sleep(_RETRY_SECONDS)
