"""The JSON-RPC of mcp-host: a token a boot, then the operations of `McpHost`."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agentbox.contracts.agent_host.rpc import rpc_methods
from agentbox.contracts.mcp import CONTRACT_VERSION
from agentbox.contracts.operations.mcp import MCP_HOST
from agentbox.core.rpc.session import Session
from agentbox.core.slot_errors import NotFound, PermissionDenied
from agentbox.mcphost.host import McpService

_METHODS = {method.name: method for method in rpc_methods(MCP_HOST).values()}


@dataclass(frozen=True)
class RpcService:
    """What each connection works on."""

    service: McpService
    token: str = field(repr=False)
    contract_version: ClassVar[str] = CONTRACT_VERSION
    program: ClassVar[str] = "mcp-host"

    def handshake(self, session: Session[Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises PermissionDenied for a wrong token."""
        token = str(params.get("token", ""))
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            raise PermissionDenied(
                "cannot use mcp-host: the token is not valid for this boot", scope="core"
            )
        return {"capabilities": []}

    async def handle(self, session: Session[Any], name: str, params: Mapping[str, Any]) -> Any:
        """Raises NotFound for an unknown method, and what the operation raises."""
        if (method := _METHODS.get(name)) is None:
            raise NotFound(f"unknown method {name}", resource="method", id=name)
        operation = getattr(self.service, method.operation.name)
        return method.encode_result(await operation(**method.decode(params)))
