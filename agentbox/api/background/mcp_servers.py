"""Follows mcp-host: its events go to the journal, and it gets the configuration of each plan that
is put in force.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from prometheus_client import Gauge

from agentbox.adapters.runtime.slots import Slots
from agentbox.api.background.agent_events import to_event
from agentbox.api.plan_source import PlanSource
from agentbox.client.mcp_host import McpHostClient
from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError
from agentbox.plan.model import Plan
from agentbox.plan.names import MCP_HOST

_WAIT_SECONDS = 30.0
_PAUSE_SECONDS = 1.0
_OF_CALLS = ("mcp.called", "mcp.asked")  # as many as an agent likes


def runs_mcp_host(plan: Plan) -> bool:
    """Whether this box has the program, which an enabled row of `[mcp.servers]` brings."""
    return any(program.name == MCP_HOST for program in plan.programs)


async def follow_mcp_host(plans: PlanSource, paths: Paths, slots: Slots, drift: Gauge) -> None:
    """Until cancelled. Reconnects as needed. `drift` is the number of such tools by server."""
    changed = asyncio.Event()
    plans.subscribe(lambda _plan: changed.set())
    client = McpHostClient(paths)
    try:
        await asyncio.gather(
            _send_plans(client, plans, changed), _journal_events(client, plans, slots, drift)
        )
    finally:
        await client.close()


async def _send_plans(client: McpHostClient, plans: PlanSource, changed: asyncio.Event) -> None:
    """A program that was restarted begins with the plan of the boot, so all are told again."""
    while True:
        try:
            changed.clear()
            await client.operations.configure(_configuration(plans.current))
        except AdapterError:
            await asyncio.sleep(_PAUSE_SECONDS)
            continue
        await _wait_for_change(client, changed)


async def _wait_for_change(client: McpHostClient, changed: asyncio.Event) -> None:
    """Until there is another plan, or another mcp-host."""
    waits = [
        asyncio.ensure_future(changed.wait()),
        asyncio.ensure_future(client.wait_lost()),
    ]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _journal_events(
    client: McpHostClient, plans: PlanSource, slots: Slots, drift: Gauge
) -> None:
    source, position = f"urn:agentbox:box:{plans.current.name}", 0
    while True:
        try:
            lines = await client.operations.read_record(position, wait_s=_WAIT_SECONDS)
            if lines:
                await _append(slots, lines, source)
                position = lines[-1].seq
            servers = await client.operations.list_servers()
            drift.clear()
            for server in servers:
                changed = sum(tool.state == "drift" for tool in server.tools)
                drift.labels(server.name).set(changed)
        except AdapterError:
            await asyncio.sleep(_PAUSE_SECONDS)


async def _append(slots: Slots, lines: tuple[LifecycleRecord, ...], source: str) -> None:
    """Agents can cause calls at will: these fill the agents' part of the journal, and further ones
    are dropped and counted."""
    journal = slots.journal
    refusal = journal.agent_refusal
    accepted = [line for line in lines if refusal is None or line.type not in _OF_CALLS]
    await slots.events.append([to_event(line, source) for line in accepted])
    if refusal is not None:
        journal.count_lost(refusal, len(lines) - len(accepted))


def _configuration(plan: Plan) -> Mapping[str, Any]:
    from agentbox.mcphost.config import McpConfig  # only in a box with servers

    return McpConfig.from_plan(plan).to_json()
