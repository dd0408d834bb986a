"""The live connections to all servers: started at first use, ended when idle."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from agentbox.core.slot_errors import AdapterError, McpUnavailable
from agentbox.mcphost.config import McpConfig
from agentbox.mcphost.connection import ServerConnection, Transport
from agentbox.plan.tables import McpServerPlan

_IDLE_CHECK_SECONDS = 5.0

MakeTransport = Callable[[str, McpServerPlan, str], Transport]
"""Server, row and agent id -> transport. Raises AdapterError."""


@dataclass(frozen=True)
class Key:
    """`agent_id` is "" for an instance that all agents share."""

    server: str
    agent_id: str


class ServerPool:
    """For one event loop. `config` may be replaced: connections whose row has changed are ended."""

    def __init__(self, config: McpConfig, make_transport: MakeTransport) -> None:
        self.config, self._make_transport = config, make_transport
        self.connections: dict[Key, ServerConnection] = {}
        self._ending: set[ServerConnection] = set()  # replaced, or not to be used any more
        self.failures: dict[str, str] = {}  # by server: why it failed last

    def count(self, server: str) -> int:
        """Live connections of a server."""
        return sum(
            key.server == server and not one.is_over for key, one in self.connections.items()
        )

    async def acquire(self, server: str, agent_id: str) -> ServerConnection:
        """A ready connection for that agent. Raises McpUnavailable."""
        row = self.config.servers[server]
        key = Key(server, "" if self._is_shared(row) else agent_id)
        connection = self.connections.get(key)
        if connection is None or connection.is_over:
            connection = self._start(key, row)
        connection.used_at = time.monotonic()
        try:
            await connection.wait_ready()
        except McpUnavailable as error:
            self.failures[server] = error.message
            raise
        self.failures.pop(server, None)
        return connection

    async def restart(self, server: str) -> None:
        """Ends all connections of a server; the next call starts one."""
        await self._close([key for key in self.connections if key.server == server])

    async def end_agent(self, agent_id: str) -> None:
        """Ends what served only that agent."""
        await self._close([key for key in self.connections if key.agent_id == agent_id])

    async def replace_config(self, config: McpConfig) -> None:
        """Puts a newer configuration in force."""
        old, self.config = self.config, config
        changed = [
            key
            for key in self.connections
            if config.servers.get(key.server) != old.servers.get(key.server)
        ]
        await self._close(changed)

    async def close(self) -> None:
        """Returns when nothing of any server is left."""
        await asyncio.gather(*(connection.close() for connection in self._ending))
        await self._close(list(self.connections))

    async def end_idle(self) -> None:
        """Ends what has not been used for `idle_seconds`, until cancelled."""
        while True:
            await asyncio.sleep(_IDLE_CHECK_SECONDS)
            now = time.monotonic()
            await self._close(
                [key for key, one in self.connections.items() if self._is_idle(key, one, now)]
            )

    def _is_idle(self, key: Key, connection: ServerConnection, now: float) -> bool:
        row = self.config.servers.get(key.server)
        is_unused = not connection.calls and row is not None
        return row is None or (is_unused and now - connection.used_at >= row.idle_seconds)

    def _is_shared(self, row: McpServerPlan) -> bool:
        """A server that may ask has a connection for each agent, whose questions these are."""
        if row.transport == "http":
            return not row.elicitation
        return row.instance == "shared"

    def _start(self, key: Key, row: McpServerPlan) -> ServerConnection:
        if len(self.connections) >= self.config.mcp.max_servers and key not in self.connections:
            raise McpUnavailable(
                f"cannot start the MCP server {key.server}: {len(self.connections)} run, and "
                f"mcp.max_servers is {self.config.mcp.max_servers}",
                hint="try again when one is idle, or raise mcp.max_servers in agentbox.toml",
                server=key.server,
            )
        try:
            transport = self._make_transport(key.server, row, key.agent_id)
        except AdapterError as error:
            raise McpUnavailable(
                f"cannot start the MCP server {key.server}: {error.message}",
                hint=error.hint,
                server=key.server,
            ) from error
        if (previous := self.connections.get(key)) is not None:
            self._ending.add(previous)
        connection = self.connections[key] = ServerConnection(
            key.server, transport, asks=row.elicitation
        )
        connection.ended.add_done_callback(lambda _: self._forget(key, connection))
        return connection

    def _forget(self, key: Key, connection: ServerConnection) -> None:
        self._ending.discard(connection)
        if self.connections.get(key) is connection:
            del self.connections[key]

    async def _close(self, keys: list[Key]) -> None:
        connections = [one for key in keys if (one := self.connections.get(key)) is not None]
        await asyncio.gather(*(connection.close() for connection in connections))
