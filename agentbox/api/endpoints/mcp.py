"""MCP servers over HTTP: forwarded to mcp-host, which runs only in a box that has some."""

from collections.abc import Mapping

from agentbox.api.plan_source import PlanSource
from agentbox.client.mcp_host import McpHostClient
from agentbox.contracts.mcp import McpHost, McpServer, McpServers
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import NotFound


class McpHandlers:
    """Connects to mcp-host at the first request for a server."""

    def __init__(self, paths: Paths, plans: PlanSource) -> None:
        self._client, self._plans = McpHostClient(paths), plans

    async def list_servers(self) -> McpServers:
        if not any(row.enabled for row in self._plans.current.mcp.servers.values()):
            return McpServers(items=())
        return McpServers(items=await self._client.operations.list_servers())

    async def show_server(self, name: str) -> McpServer:
        return await self._host(name).get_server(name)

    async def test_server(self, name: str) -> McpServer:
        return await self._host(name).test_server(name)

    async def pin_server(self, name: str, pins: Mapping[str, str]) -> McpServer:
        return await self._host(name).pin_server(name, pins)

    async def restart_server(self, name: str) -> McpServer:
        return await self._host(name).restart_server(name)

    def _host(self, name: str) -> McpHost:
        """Raises NotFound for a server that the manifest does not have, or that is off."""
        row = self._plans.current.mcp.servers.get(name)
        if row is None or not row.enabled:
            raise NotFound(
                f"cannot find the MCP server {name}: [mcp.servers] has no enabled row of that name",
                resource="mcp-server",
                id=name,
            )
        return self._client.operations
