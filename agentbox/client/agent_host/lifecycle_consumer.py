"""Consumes the lifecycle record of agent-host."""

import asyncio

from agentbox.client.agent_host.connection import open_agent_host
from agentbox.contracts.agent_host.lifecycle_record import RecordHandler
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError

_WAIT_SECONDS = 30.0
_PAUSE_SECONDS = 1.0


async def consume_record(paths: Paths, handler: RecordHandler) -> None:
    """Calls `handler` with all entries in order, until cancelled. Entries are acknowledged when it
    returns; if it raises an AdapterError, they are repeated after a second. Reconnects as needed.
    """
    while True:
        try:
            async with open_agent_host(paths) as host:
                await _consume(host, handler)
        except AdapterError:
            await asyncio.sleep(_PAUSE_SECONDS)


async def consume_record_of(host: AgentHost, handler: RecordHandler) -> None:
    """As `consume_record`, over the connection of the slot."""
    while True:
        try:
            await _consume(host, handler)
        except AdapterError:
            await asyncio.sleep(_PAUSE_SECONDS)


async def _consume(host: AgentHost, handler: RecordHandler) -> None:
    position = 0
    while True:
        if lines := await host.read_record(position, wait_s=_WAIT_SECONDS):
            await handler(lines)
            position = lines[-1].seq
