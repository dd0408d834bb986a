"""A connection to the program agent-host of this box, authenticated by the per-boot token."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.agent_host.rpc import RpcMethod
from agentbox.contracts.orchestrator import CONTRACT_VERSION
from agentbox.core import clock
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.core.rpc import messages
from agentbox.core.rpc.client import RpcClient, Subscription
from agentbox.core.slot_errors import SlotUnavailable

_CONNECT_SECONDS = 10.0
_RETRY_SECONDS = 0.02


class _LocalPeer:
    """agent-host itself, without a slot around it."""

    peer, impl = "agent-host", "local-process"
    grace_s = 0.0  # no operation of `AgentHost` ends an agent

    def __init__(self, client: RpcClient, capabilities: frozenset[str]) -> None:
        self._client, self.capabilities = client, capabilities

    async def call(
        self, method: RpcMethod, params: Mapping[str, Any], seconds: float | None
    ) -> Any:
        seconds = method.operation.deadline_s if seconds is None else seconds
        return await self._client.call(method.name, params, Deadline.after(seconds))

    async def subscribe(self, method: RpcMethod, params: Mapping[str, Any]) -> Subscription:
        return await self._client.subscribe(method.name, params, Deadline.after(_CONNECT_SECONDS))


@contextlib.asynccontextmanager
async def open_agent_host(paths: Paths) -> AsyncIterator[AgentHost]:
    """agent-host over a connection of its own, closed at the end. Raises what `connect` raises."""
    client, hello = await connect(paths, Deadline.after(_CONNECT_SECONDS))
    try:
        peer = _LocalPeer(client, frozenset(hello["capabilities"]))
        yield agent_host_client(lambda: peer)
    finally:
        await client.close()


async def connect(
    paths: Paths,
    deadline: Deadline,
    impl: str = "local-process",
    bounds: Mapping[str, Any] | None = None,
    program: str = "",
) -> tuple[RpcClient, dict[str, Any]]:
    """Return a connection accepted by agent-host and its hello. `bounds` apply there from then on.
    A `program` of the box has a token of its own.

    Waits for the socket within the deadline. Raises SlotUnavailable, PermissionDenied (a wrong
    token) or ContractMismatch.
    """
    client = await _open_connection(paths, deadline, impl)
    try:
        params = {
            "token": _token(paths, program),
            "contract_version": CONTRACT_VERSION,
            "bounds": bounds or {},
        }
        hello = await client.call("initialize", params, deadline)
    except BaseException:
        await client.close()
        raise
    return client, hello


def _token(paths: Paths, program: str) -> str:
    path = paths.agent_host_token(program) if program else paths.token("agent-host")
    return path.read_text(encoding="ascii").strip()


async def _open_connection(paths: Paths, deadline: Deadline, impl: str) -> RpcClient:
    while True:
        try:
            reader, writer = await asyncio.open_unix_connection(
                paths.agent_host_socket, limit=messages.LINE_LIMIT
            )
            return RpcClient(reader, writer, impl)
        except OSError as error:
            if deadline.remaining() <= _RETRY_SECONDS:
                raise SlotUnavailable(
                    f"cannot reach agent-host: {error.strerror or error}",
                    hint="check its log in the box",
                    slot="orchestrator",
                    impl=impl,
                    since=clock.to_wire(clock.now()),
                ) from error
        await asyncio.sleep(_RETRY_SECONDS)
