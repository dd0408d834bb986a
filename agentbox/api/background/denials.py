"""What agents were refused, as who runs them counts it, in `/metrics`."""

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
_WAIT_SECONDS = 30.0  # of one question
_PAUSE_SECONDS = 0.2  # between two, so that a flood of refusals is no flood of questions
_RETRY_SECONDS = 1.0
_EMPTY = DenialCounts(revision=-1, totals=())


class DenialMetrics(Collector):
    """The counts that were read last, also while nobody answers. They start from 0 with who counts them."""

    counts = _EMPTY

    def collect(self) -> Iterator[CounterMetricFamily]:
        """One family, by agent, class, layer and rule."""
        family = CounterMetricFamily(
            "agentbox_denied",
            "Refusals of a process of ours",
            labels=("agent", "class", "layer", "rule"),
        )
        for row in self.counts.totals:
            family.add_metric((row.agent, row.denial_class, row.layer, row.rule), row.count)
        yield family


async def follow_denials(services: "Services") -> None:
    """Keeps the metrics at what the orchestrator counts, until cancelled. A question always waits at its connection, so a
    lost one is known at once, and the slot is down before the next caller finds it so."""
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
