"""Operations as calls over JSON-RPC: names, arguments, deadlines and results follow from their
tables.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol, TypeVar, cast

from agentbox.client.agent_host.unavailable import unavailable
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.agent_host.rpc import RpcMethod, rpc_methods
from agentbox.contracts.operations.agent_host import AGENT_HOST
from agentbox.contracts.routes.resource import Resource
from agentbox.core.rpc.client import Subscription
from agentbox.core.slot_errors import BackendError, ValidationError

C = TypeVar("C", bound=type)


class RpcPeer(Protocol):
    """The other end of a connection. `peer` and `impl` name it in errors."""

    @property
    def peer(self) -> str: ...

    @property
    def impl(self) -> str: ...

    @property
    def capabilities(self) -> frozenset[str]: ...

    async def call(
        self, method: RpcMethod, params: Mapping[str, Any], seconds: float | None
    ) -> Any:
        """`seconds` None: the usual deadline. Raises slot errors."""
        ...

    async def subscribe(self, method: RpcMethod, params: Mapping[str, Any]) -> Subscription:
        """Raises slot errors."""
        ...

    @property
    def grace_s(self) -> float:
        """Seconds an agent has to end by itself."""
        ...


def calls_operations(resource: Resource, peer: Callable[[Any], RpcPeer]) -> Callable[[C], C]:
    """Give a class a method for each operation of the resource that is called over JSON-RPC, with
    its signature; not for sockets. `peer` finds the peer of an instance."""

    def add_methods(cls: C) -> C:
        for name, method in rpc_methods(resource).items():
            if method.operation.kind != "socket":
                derive = _derive_stream if method.operation.is_stream else _derive_call
                derived = derive(method, peer)
                derived.__signature__ = resource.signature(name)  # type: ignore[attr-defined]
                derived.__name__ = name
                setattr(cls, name, derived)
        return cls

    return add_methods


def _derive_call(method: RpcMethod, peer_of: Callable[[Any], RpcPeer]) -> Callable[..., Any]:
    async def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        peer = peer_of(self)
        _check_capability(peer, method)
        arguments = method.bind(args, kwargs)
        seconds = method.seconds(arguments, peer.grace_s)
        return _decode(peer, method, await peer.call(method, method.encode(arguments), seconds))

    return call


def _derive_stream(method: RpcMethod, peer_of: Callable[[Any], RpcPeer]) -> Callable[..., Any]:
    async def stream(self: Any, /, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        peer = peer_of(self)
        _check_capability(peer, method)
        subscription = await peer.subscribe(method, method.encode(method.bind(args, kwargs)))
        try:
            async with contextlib.aclosing(subscription.items()) as items:
                async for item in items:
                    yield _decode(peer, method, item)
        finally:
            subscription.close()

    return stream


def _check_capability(peer: RpcPeer, method: RpcMethod) -> None:
    capability = method.operation.capability
    if capability and capability not in peer.capabilities:
        raise unavailable(capability, peer.impl)


def _decode(peer: RpcPeer, method: RpcMethod, data: Any) -> Any:
    """Raises BackendError."""
    try:
        return method.decode_result(data)
    except ValidationError as error:
        raise BackendError(
            f"cannot use orchestrator: {peer.peer} did not return a valid {method.result_name}",
            slot="orchestrator",
            impl=peer.impl,
        ) from error


@calls_operations(AGENT_HOST, lambda client: client.find_peer())
class AgentHostClient:
    """`AgentHost` at the peer of the moment, with the operations that its capabilities allow. A
    stream stays with the peer that it was started at."""

    def __init__(self, find_peer: Callable[[], RpcPeer]) -> None:
        self.find_peer = find_peer

    @property
    def capabilities(self) -> frozenset[str]:
        return self.find_peer().capabilities


def agent_host_client(find_peer: Callable[[], RpcPeer]) -> AgentHost:
    """The client with the type of its derived methods."""
    return cast(AgentHost, AgentHostClient(find_peer))
