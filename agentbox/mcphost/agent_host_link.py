"""mcp-host at agent-host: under its own token, which reaches only the sandboxes that it made."""

import contextlib
from collections.abc import AsyncIterator

from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.client.agent_host.program_connection import ProgramConnection
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.core.paths import Paths
from agentbox.mcphost.sandbox_server import GRACE_SECONDS
from agentbox.plan.names import MCP_HOST

PRINCIPAL = "urn:agentbox:program:mcp-host"
_PAGE = 500


@contextlib.asynccontextmanager
async def open_link(paths: Paths) -> AsyncIterator[AgentHost]:
    """Without sandboxes of an earlier mcp-host. Raises SlotUnavailable."""
    connection = ProgramConnection(paths, MCP_HOST, lambda: {"principal": PRINCIPAL})
    try:
        await connection.open()
        host = agent_host_client(lambda: connection)
        await _end_sandboxes(host)
        yield host
    finally:
        await connection.close()


async def _end_sandboxes(host: AgentHost) -> None:
    """Those of servers whose connections ended with an earlier mcp-host."""
    cursor: str | None = None
    while True:
        page = await host.list_sandboxes(limit=_PAGE, cursor=cursor)
        for sandbox in page.items:
            if sandbox.exit is None:
                await host.end_sandbox(sandbox.sandbox_id, grace_s=GRACE_SECONDS)
        if (cursor := page.next_cursor) is None:
            return
