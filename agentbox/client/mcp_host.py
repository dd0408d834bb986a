"""Client of mcp-host: a connection that is made at the first call, and again when it was lost."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from agentbox.client.agent_host.operation_calls import calls_operations
from agentbox.contracts.agent_host.rpc import RpcMethod
from agentbox.contracts.mcp import CONTRACT_VERSION, McpHost
from agentbox.contracts.operations.mcp import MCP_HOST
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.core.rpc import messages
from agentbox.core.rpc.client import RpcClient, Subscription
from agentbox.core.slot_errors import McpUnavailable, SlotUnavailable

_CONNECT_SECONDS = 5.0


class _McpHostPeer:
    """The program mcp-host of this box."""

    peer, impl = "mcp-host", "mcp-host"
    grace_s = 0.0
    capabilities: frozenset[str] = frozenset()

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._client: RpcClient | None = None
        self._connecting = asyncio.Lock()

    async def call(
        self, method: RpcMethod, params: Mapping[str, Any], seconds: float | None
    ) -> Any:
        seconds = method.operation.deadline_s if seconds is None else seconds
        try:
            client = await self._connect()
            return await client.call(method.name, params, Deadline.after(seconds))
        except (SlotUnavailable, OSError) as error:
            raise McpUnavailable(
                "cannot use MCP servers: mcp-host does not answer",
                hint="agentbox logs mcp-host",
                server="",
            ) from error

    async def subscribe(self, method: RpcMethod, params: Mapping[str, Any]) -> Subscription:
        raise McpUnavailable("cannot stream from mcp-host: it has no streams", server="")

    async def wait_lost(self) -> None:
        """Until the connection is lost; returns at once if there is none."""
        if self._client is not None:
            await self._client.wait_lost()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _connect(self) -> RpcClient:
        """Raises OSError, and SlotUnavailable."""
        async with self._connecting:
            if self._client is not None and not self._client.lost:
                return self._client
            token = self._paths.mcp_host_token.read_text(encoding="ascii")
            reader, writer = await asyncio.open_unix_connection(
                self._paths.mcp_host_socket, limit=messages.LINE_LIMIT
            )
            client = RpcClient(reader, writer, self.impl, peer=self.peer)
            params = {"token": token, "contract_version": CONTRACT_VERSION}
            try:
                await client.call("initialize", params, Deadline.after(_CONNECT_SECONDS))
            except BaseException:
                await client.close()
                raise
            self._client = client
            return client


@calls_operations(MCP_HOST, lambda client: client.find_peer())
class McpHostClient:
    """`McpHost` of this box; `close` ends the connection."""

    def __init__(self, paths: Paths) -> None:
        self._peer = _McpHostPeer(paths)

    def find_peer(self) -> _McpHostPeer:
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
