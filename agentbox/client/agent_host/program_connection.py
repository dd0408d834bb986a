"""The connection of a program of this box to agent-host, with the token of that program: it reaches
what the program made (`agents/rpc/program_access.py`). It is opened by the first call, and again by
the first call after it was lost.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from agentbox.client.agent_host.connection import connect
from agentbox.contracts.agent_host.rpc import RpcMethod
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.core.rpc.client import RpcClient, Subscription

_CONNECT_SECONDS = 10.0


class ProgramConnection:
    """An `RpcPeer`. `caller` returns whom a call acts for: the members `principal`, `session_id`
    and `trace_id` of its params. For one event loop. Raises SlotUnavailable without agent-host."""

    peer, impl = "agent-host", "local-process"
    grace_s = 0.0  # no operation of `AgentHost` ends an agent

    def __init__(self, paths: Paths, program: str, caller: Callable[[], Mapping[str, str]]) -> None:
        self._paths, self._program, self._caller = paths, program, caller
        self._client: RpcClient | None = None
        self._opening = asyncio.Lock()
        self.capabilities: frozenset[str] = frozenset()

    async def open(self) -> None:
        """Returns once it is connected. Raises SlotUnavailable."""
        await self._connected()

    async def call(
        self, method: RpcMethod, params: Mapping[str, Any], seconds: float | None
    ) -> Any:
        seconds = method.operation.deadline_s if seconds is None else seconds
        if method.operation.caller:
            params = {**params, **self._caller()}
        client = await self._connected()
        return await client.call(method.name, params, Deadline.after(seconds))

    async def subscribe(self, method: RpcMethod, params: Mapping[str, Any]) -> Subscription:
        client = await self._connected()
        return await client.subscribe(method.name, params, Deadline.after(_CONNECT_SECONDS))

    async def close(self) -> None:
        """Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connected(self) -> RpcClient:
        async with self._opening:
            if self._client is not None and self._client.lost:
                await self.close()
            if self._client is None:
                self._client, hello = await connect(
                    self._paths, Deadline.after(_CONNECT_SECONDS), program=self._program
                )
                self.capabilities = frozenset(hello["capabilities"])
            return self._client
