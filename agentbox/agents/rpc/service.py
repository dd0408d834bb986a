"""What a connection works on: the agents and services of the host, token, and the stop event."""

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.context import CallContext
from agentbox.agents.canaries import SandboxCanaryRunner
from agentbox.agents.registry.agent_registry import AgentRegistry
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.rpc.agent_host_service import AgentHostService
from agentbox.agents.rpc.host_orchestrator import HostOrchestrator
from agentbox.agents.rpc.program_access import NO_PROGRAMS, ProgramTokens, check_call
from agentbox.agents.sandboxes.manager import SandboxManager
from agentbox.contracts.orchestrator import CONTRACT_VERSION
from agentbox.core.frozen import frozen
from agentbox.core.rpc.session import Method, Session
from agentbox.core.slot_errors import NotFound, PermissionDenied
from agentbox.plan.names import AGENT_HOST

# `detached`: agents outlive their callers, and callers share them. `limits.raise`: scope admin may
# raise limits. `record`: the ordered event record can be read. `local`: agents are processes of
# this box and end with it. `review`: agents that may write the workspace work in a branch, which is
# reviewed. `denials`: denials are counted and can be read. `backpressure`: output waits for an
# attached reader. `sandboxes`: programs can be run in agents without one of their own.
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
    "sandboxes",
    "stream",
)


@frozen
class Service:
    """One per program. `methods` are the RPC methods by name; `agents` and `services` implement
    the derived ones."""

    host: HostState
    registry: AgentRegistry
    canaries: SandboxCanaryRunner
    agents: HostOrchestrator
    services: AgentHostService
    sandboxes: SandboxManager
    methods: "Mapping[str, Method[Service]]" = field(repr=False)
    token: str | None = field(repr=False)  # None: the connection itself authenticates the caller
    programs: ProgramTokens = field(default=NO_PROGRAMS, repr=False)
    capabilities: tuple[str, ...] = CAPABILITIES
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    contract_version: ClassVar[str] = CONTRACT_VERSION
    program: ClassVar[str] = AGENT_HOST

    def handshake(self, session: Session[Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """Apply the bounds of the caller from now on, but not those of a program, which is none of
        the callers that the end of agents waits for. Raises PermissionDenied for a wrong token."""
        token = str(params.get("token", "")).encode()
        if program := self.programs.find(token):
            session.program, session.is_watch_only = program, True
            return {"capabilities": list(self.capabilities)}
        if self.token is not None and not hmac.compare_digest(token, self.token.encode()):
            raise PermissionDenied(
                "cannot use agent-host: the token is not valid for this boot", scope="core"
            )
        self.host.config = self.host.config.with_bounds(params.get("bounds") or {})
        return {"capabilities": list(self.capabilities)}

    async def handle(self, session: Session[Any], method: str, params: Mapping[str, Any]) -> Any:
        """Raises NotFound for an unknown method, and what `check_call` raises."""
        handler = self.methods.get(method)
        if handler is None:
            raise NotFound(f"unknown method {method}", resource="method", id=method)
        if not session.program:
            return await handler(session, params)
        check_call(self.host, session.program, method, params)
        with context.as_caller(CallContext(program=session.program)):
            return await handler(session, params)
