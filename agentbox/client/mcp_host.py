"""Client of mcp-host, the program of this box that runs MCP servers for agents."""

from collections.abc import Mapping
from typing import Any, cast

from agentbox.client.agent_host.operation_calls import calls_operations
from agentbox.client.program_connection import ProgramConnection
from agentbox.contracts.agent_host.rpc import RpcMethod
from agentbox.contracts.mcp import CONTRACT_VERSION, McpHost
from agentbox.contracts.operations.mcp import MCP_HOST
from agentbox.core.paths import Paths
from agentbox.core.rpc.client import Subscription
from agentbox.core.slot_errors import McpUnavailable, SlotUnavailable
from agentbox.plan.names import MCP_HOST as PEER


class _McpHostConnection(ProgramConnection):
    """Raises McpUnavailable while mcp-host does not answer."""

    def __init__(self, paths: Paths) -> None:
        super().__init__(
            PEER,
            paths.mcp_host_socket,
            lambda: paths.mcp_host_token.read_text(encoding="ascii"),
            CONTRACT_VERSION,
            slot="mcp",
            waits=False,
        )

    async def call(
        self, method: RpcMethod, params: Mapping[str, Any], seconds: float | None
    ) -> Any:
        try:
            return await super().call(method, params, seconds)
        except SlotUnavailable as error:
            raise McpUnavailable(
                "cannot use MCP servers: mcp-host does not answer", hint=error.hint, server=""
            ) from error

    async def subscribe(self, method: RpcMethod, params: Mapping[str, Any]) -> Subscription:
        raise McpUnavailable("cannot stream from mcp-host: it has no streams", server="")


@calls_operations(MCP_HOST, lambda client: client.find_peer())
class McpHostClient:
    """`McpHost` of this box; `close` ends the connection."""

    def __init__(self, paths: Paths) -> None:
        self._peer = _McpHostConnection(paths)

    def find_peer(self) -> _McpHostConnection:
        return self._peer

    @property
    def capabilities(self) -> frozenset[str]:
        return self._peer.capabilities

    @property
    def operations(self) -> McpHost:
        """Itself, with the type of its derived methods."""
        return cast(McpHost, self)

    async def wait_lost(self) -> None:
        """Until the connection is lost; returns at once if there is none."""
        await self._peer.wait_lost()

    async def close(self) -> None:
        """Idempotent."""
        await self._peer.close()
