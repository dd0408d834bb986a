# Written by tools/sync_client.py from async_client/mcp.py.
# Written by tools/client_operations.py from agentbox/contracts.

"""MCP servers of the box."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentbox.client.transport import decode

if TYPE_CHECKING:
    from agentbox.client.sync.request_sender import RequestSender
    from agentbox.contracts.mcp import McpServer, McpServers


class McpClient:
    """MCP servers of the box. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: RequestSender) -> None:
        self._box = box

    def list_servers(self) -> McpServers:
        """The MCP servers of the manifest, with the tools that they had when last asked."""
        from agentbox.contracts.mcp import McpServers

        response = self._box.request("list_mcp_servers")
        return decode(McpServers, response)

    def show_server(self, name: str) -> McpServer:
        """One MCP server."""
        from agentbox.contracts.mcp import McpServer

        response = self._box.request("show_mcp_server", {"name": name})
        return decode(McpServer, response)

    def test_server(self, name: str) -> McpServer:
        """Asks an MCP server for its tools now; it is started if it does not run."""
        from agentbox.contracts.mcp import McpServer

        response = self._box.request("test_mcp_server", {"name": name}, wait_s=90)
        return decode(McpServer, response)

    def pin_server(self, name: str, pins: Mapping[str, Any]) -> McpServer:
        """Pins definitions that were seen, of a server with `pin = "first-use"`."""
        from agentbox.contracts.mcp import McpServer

        response = self._box.request("pin_mcp_server", {"name": name}, body={"pins": pins})
        return decode(McpServer, response)

    def restart_server(self, name: str) -> McpServer:
        """Ends all instances of an MCP server: the next call starts it again."""
        from agentbox.contracts.mcp import McpServer

        response = self._box.request("restart_mcp_server", {"name": name}, wait_s=90)
        return decode(McpServer, response)
