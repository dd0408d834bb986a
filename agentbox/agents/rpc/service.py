"""What a connection works on: the table of agents, the runs, the token, and the wish that the program ends."""

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentbox.agents.canaries import CanaryRunner
from agentbox.agents.registry.agent_registry import AgentRegistry
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.rpc.methods import METHODS
from agentbox.agents.runs.one_shot import OneShotRuns
from agentbox.core.rpc.session import Session
from agentbox.core.slot_errors import NotFound, PermissionDenied

# `detached`: agents outlive their callers, and several callers share them. `limits.raise`: who holds scope admin may raise limits. `record`: the ordered
# record of what became of agents is read over the connection. `local`: they are processes of this box, and end with it.
# `review`: who may write the workspace works in a branch, which is reviewed over the connection.
# `denials`: what they were refused is counted, and read over the connection.
# `backpressure`: output waits for a reader that is attached to it.
CAPABILITIES = (
    "attach",
    "backpressure",
    "denials",
    "detached",
    "limits.raise",
    "local",
    "record",
    "restart",
    "review",
    "run_once",
    "stream",
)


@dataclass(frozen=True, kw_only=True)
class Service:
    """One a program."""

    host: HostState
    registry: AgentRegistry
    runs: OneShotRuns
    canaries: CanaryRunner
    token: str | None = field(repr=False)  # None: who holds the connection is known by that alone
    capabilities: tuple[str, ...] = CAPABILITIES
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def handshake(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Takes the bounds over, which hold from then on. Raises PermissionDenied for a wrong token."""
        token = str(params.get("token", "")).encode()
        if self.token is not None and not hmac.compare_digest(token, self.token.encode()):
            raise PermissionDenied(
                "cannot use agent-host: the token is not that of this boot", scope="core"
            )
        self.host.config = self.host.config.with_bounds(params.get("bounds") or {})
        return {"capabilities": list(self.capabilities)}

    async def handle(self, session: Session[Any], method: str, params: Mapping[str, Any]) -> Any:
        """Raises NotFound for a method that there is not."""
        handler = METHODS.get(method)
        if handler is None:
            raise NotFound(
                f"cannot call {method}: there is no such method", resource="method", id=method
            )
        return await handler(session, params)
