"""Reads the denials of agents from the agent host, for `/metrics`."""

import asyncio

from agentbox.adapters.runtime.slots import Slots
from agentbox.api.metrics.denial_metrics import DenialMetrics
from agentbox.core.slot_errors import AdapterError, SlotUnavailable

CAPABILITY = "denials"
_WAIT_SECONDS = 30.0  # for one request
_PAUSE_SECONDS = 0.2  # between two requests, so that many denials do not cause many requests
_RETRY_SECONDS = 1.0


async def follow_denials(slots: Slots, metrics: DenialMetrics) -> None:
    """Updates the metrics until cancelled. A request is always pending on the connection, so a lost
    connection is noticed before the next caller needs the slot.
    """
    host = slots.agent_host
    while True:
        try:
            if CAPABILITY not in host.capabilities:
                await asyncio.sleep(_RETRY_SECONDS if host.capabilities else _WAIT_SECONDS)
                continue
            metrics.counts = await host.read_denials(metrics.counts.revision, wait_s=_WAIT_SECONDS)
            await asyncio.sleep(_PAUSE_SECONDS)
        except AdapterError as error:
            if isinstance(error, SlotUnavailable):
                slots.request_health_check("orchestrator")
            await asyncio.sleep(_RETRY_SECONDS)
