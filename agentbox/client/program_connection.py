"""The connection to a program of this box over its Unix socket. It is opened by the first call, and
again by the first call after it was lost.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from agentbox.contracts.agent_host.rpc import RpcMethod
from agentbox.core.deadline import Deadline
from agentbox.core.rpc import messages
from agentbox.core.rpc.client import RpcClient, Subscription
from agentbox.core.slot_errors import SlotUnavailable

_CONNECT_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 0.02


class ProgramConnection:
    """An `RpcPeer`. Raises SlotUnavailable while the program does not answer.

    `token` returns what the program expects in `initialize`. With `waits`, a call waits for a
    program that starts, 10 s at most.
    """

    capabilities: frozenset[str] = frozenset()
    grace_s = 0.0  # no operation of such a program ends an agent within a grace period

    def __init__(
        self,
        program: str,
        socket: Path,
        token: Callable[[], str],
        contract_version: str,
        *,
        slot: str,
        waits: bool,
    ) -> None:
        self.peer = self.impl = program
        self._socket, self._token, self._contract_version = socket, token, contract_version
        self._slot, self._waits = slot, waits
        self._client: RpcClient | None = None
        self._opening = asyncio.Lock()

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

    async def aclose(self) -> None:
        """Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connected(self) -> RpcClient:
        async with self._opening:
            if self._client is not None and self._client.lost:
                await self.aclose()
            if self._client is None:
                self._client = await self._open(Deadline.after(_CONNECT_SECONDS))
            return self._client

    async def _open(self, deadline: Deadline) -> RpcClient:
        client = await self._connect(deadline)
        try:
            params = {"token": self._read_token(), "contract_version": self._contract_version}
            await client.call("initialize", params, deadline)
        except BaseException:
            await client.close()
            raise
        return client

    async def _connect(self, deadline: Deadline) -> RpcClient:
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(
                    self._socket, limit=messages.LINE_LIMIT
                )
                return RpcClient(reader, writer, self.impl, peer=self.peer, slot=self._slot)
            except OSError as error:
                if not self._waits or deadline.remaining() <= _RETRY_SECONDS:
                    raise self._unreachable(error) from error
            await asyncio.sleep(_RETRY_SECONDS)

    def _read_token(self) -> str:
        try:
            return self._token()
        except OSError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: OSError) -> SlotUnavailable:
        return SlotUnavailable(
            f"cannot reach {self.peer}: {error.strerror or error}",
            hint=f"agentbox logs {self.peer}",
            slot=self._slot,
            impl=self.impl,
            since=None,
        )
