"""The JSON-RPC of session-host: `SessionHost` by its operation table. The API has its token."""

import hmac
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from agentbox.contracts.agent_host.rpc import RpcMethod, rpc_methods
from agentbox.contracts.operations.sessions import SESSION_HOST
from agentbox.contracts.session_host import CONTRACT_VERSION
from agentbox.core.frozen import frozen
from agentbox.core.records.wire import to_json, to_wire
from agentbox.core.rpc.session import Session
from agentbox.core.rpc.subscriptions import ServerSubscription
from agentbox.core.slot_errors import NotFound, PermissionDenied
from agentbox.plan.names import SESSION_HOST as PROGRAM
from agentbox.sessions.config import LiveConfig
from agentbox.sessions.manager import SessionManager

_METHODS: Final[Mapping[str, RpcMethod]] = {
    method.name: method for method in rpc_methods(SESSION_HOST).values()
}


@frozen
class Service:
    """What a connection works on."""

    manager: SessionManager
    config: LiveConfig
    token_file: Path  # of the API, which writes a new one at each of its starts
    program: ClassVar[str] = PROGRAM
    contract_version: ClassVar[str] = CONTRACT_VERSION

    def handshake(self, _session: Session[Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises PermissionDenied for a wrong token."""
        token = str(params.get("token", "")).encode()
        expected = self.token_file.read_bytes() if self.token_file.exists() else b""
        if not expected or not hmac.compare_digest(token, expected):
            raise PermissionDenied(
                "cannot use session-host: the token is not valid for this start of the API",
                scope="core",
            )
        return {"capabilities": []}

    async def handle(self, session: Session[Any], method: str, params: Mapping[str, Any]) -> Any:
        """Raises NotFound for an unknown method."""
        known = _METHODS.get(method)
        if known is None:
            raise NotFound(f"unknown method {method}", resource="method", id=method)
        await self.config.refresh()
        operation = getattr(self.manager, known.operation.name)
        arguments = known.decode(params)
        if not known.operation.is_stream:
            return known.encode_result(await operation(**arguments))
        subscription = ServerSubscription(params["subscription"], params["credit"], session.send)
        items = operation(**arguments)
        first = await anext(items, None)  # its errors are those of the call
        session.run_subscription(subscription, subscription.send_items(_sized(first, items)))
        return {}


async def _sized(first: Any, items: AsyncIterator[Any]) -> AsyncIterator[tuple[Any, int]]:
    """Each with its size in bytes."""
    if first is None:
        return
    yield _with_size(first)
    async for item in items:
        yield _with_size(item)


def _with_size(item: Any) -> tuple[Any, int]:
    wire = to_wire(item)
    return wire, len(to_json(wire))
