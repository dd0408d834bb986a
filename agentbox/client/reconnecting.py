"""A connection to a program of this box that is opened by the first call, and again by the first
call after it was lost.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from agentbox.contracts.agent_host.rpc import RpcMethod
from agentbox.core.deadline import Deadline
from agentbox.core.rpc.client import RpcClient, Subscription

_CONNECT_SECONDS: Final = 10.0


class ReconnectingConnection(ABC):
    """An `RpcPeer` but for its names, for one event loop."""

    capabilities: frozenset[str] = frozenset()
    grace_s = 0.0  # no operation of such a program ends an agent within a grace period

    def __init__(self) -> None:
        self._client: RpcClient | None = None
        self._opening = asyncio.Lock()

    @abstractmethod
    async def _open(self, deadline: Deadline) -> RpcClient:
        """A connection that is ready for calls. Raises SlotUnavailable."""

    async def open(self) -> None:
        """Returns once it is connected. Raises SlotUnavailable."""
        await self._connected()

    async def call(
        self, method: RpcMethod, params: Mapping[str, Any], seconds: float | None
    ) -> Any:
        seconds = method.operation.deadline_s if seconds is None else seconds
        client = await self._connected()
        return await client.call(method.name, params, Deadline.after(seconds))

    async def subscribe(self, method: RpcMethod, params: Mapping[str, Any]) -> Subscription:
        client = await self._connected()
        return await client.subscribe(method.name, params, Deadline.after(_CONNECT_SECONDS))

    async def wait_lost(self) -> None:
        """Until the connection is lost; returns at once if there is none."""
        if self._client is not None:
            await self._client.wait_lost()

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
                self._client = await self._open(Deadline.after(_CONNECT_SECONDS))
            return self._client
