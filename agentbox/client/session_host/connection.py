"""The connection to the program session-host of this box, authenticated by a token that it writes.
It is opened by the first call, and again by the first call after it was lost.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from agentbox.client.agent_host.operation_calls import RpcPeer, calls_operations
from agentbox.contracts.agent_host.rpc import RpcMethod
from agentbox.contracts.operations.sessions import SESSION_HOST
from agentbox.contracts.session_host import CONTRACT_VERSION, SessionHost
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.core.rpc import messages
from agentbox.core.rpc.client import RpcClient, Subscription
from agentbox.core.rpc.tokens import write_token
from agentbox.core.slot_errors import SlotUnavailable
from agentbox.plan.names import SESSION_HOST as PEER

_SLOT = "sessions"
_CONNECT_SECONDS = 10.0
_RETRY_SECONDS = 0.02


class SessionHostConnection:
    """An `RpcPeer`. Raises SlotUnavailable without session-host."""

    peer, impl = PEER, PEER
    capabilities: frozenset[str] = frozenset()
    grace_s = 0.0  # no operation ends an agent within a grace period

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._client: RpcClient | None = None
        self._token = ""
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
            if not self._token:
                self._token = write_token(self._paths.api_token(PEER))
            params = {"token": self._token, "contract_version": CONTRACT_VERSION}
            await client.call("initialize", params, deadline)
        except BaseException:
            await client.close()
            raise
        return client

    async def _connect(self, deadline: Deadline) -> RpcClient:
        """Waits for the socket: the program starts, or starts again."""
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(
                    self._paths.session_host_socket, limit=messages.LINE_LIMIT
                )
                return RpcClient(reader, writer, PEER, peer=PEER, slot=_SLOT)
            except OSError as error:
                if deadline.remaining() <= _RETRY_SECONDS:
                    raise _unreachable(str(error.strerror or error)) from error
            await asyncio.sleep(_RETRY_SECONDS)


class NoSessionHost:
    """The peer where no agent speaks ACP: session-host does not run."""

    peer, impl = PEER, PEER
    capabilities: frozenset[str] = frozenset()
    grace_s = 0.0

    async def call(
        self, _method: RpcMethod, _params: Mapping[str, Any], _seconds: float | None
    ) -> Any:
        raise _no_agent()

    async def subscribe(self, _method: RpcMethod, _params: Mapping[str, Any]) -> Subscription:
        raise _no_agent()


@calls_operations(SESSION_HOST, lambda client: client.peer)
class _SessionHostClient:
    def __init__(self, peer: RpcPeer) -> None:
        self.peer = peer


def session_host_client(peer: RpcPeer) -> SessionHost:
    """The operations of session-host, as calls of that peer."""
    return cast(SessionHost, _SessionHostClient(peer))


def _no_agent() -> SlotUnavailable:
    return SlotUnavailable(
        "cannot use sessions: no agent of this box speaks ACP",
        hint='set protocol = "acp" in a table [agents.<name>] and build the box again',
        slot=_SLOT,
        impl=PEER,
        since=None,
    )


def _unreachable(detail: str) -> SlotUnavailable:
    return SlotUnavailable(
        f"cannot reach session-host: {detail}",
        hint="check its log in the box",
        slot=_SLOT,
        impl=PEER,
        since=None,
    )
