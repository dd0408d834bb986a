"""The orchestrator contract on the agents of this host, as far as operations return once."""

import asyncio

from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Page
from agentbox.agents.admission.admit import Requester
from agentbox.agents.errors import invalid
from agentbox.agents.registry.agent_info import detailed_info
from agentbox.agents.registry.agent_registry import AgentRegistry
from agentbox.agents.runs.one_shot import OneShotRuns
from agentbox.contracts.arguments import MAX_GRACE
from agentbox.contracts.orchestrator import (
    AgentFilter,
    AgentHandle,
    AgentInfo,
    AgentSpec,
    ExitRecord,
    RunResult,
    Signal,
)

_MAX_REQUEST_ID = 200  # characters


class HostOrchestrator:
    """The caller is that of the current context."""

    def __init__(self, registry: AgentRegistry, runs: OneShotRuns) -> None:
        self._registry, self._runs = registry, runs

    async def spawn(
        self, spec: AgentSpec, *, request_id: str, stdin: bytes | None, attached: bool
    ) -> AgentHandle:
        if stdin is not None and spec.stdin != "pipe":
            raise invalid("/stdin", "needs a spec whose stdin is a pipe")
        requester = make_requester(request_id)
        return await self._registry.spawn(spec, requester, stdin=stdin, attached=attached)

    async def run_once(
        self, spec: AgentSpec, *, request_id: str, stdin: bytes, timeout_s: float, max_output: int
    ) -> RunResult:
        return await self._runs.run(spec, make_requester(request_id), stdin, timeout_s, max_output)

    async def list(self, filter: AgentFilter, *, limit: int, cursor: str | None) -> Page[AgentInfo]:
        return self._registry.page(filter, limit, cursor)

    async def get(self, agent_id: str) -> AgentInfo:
        return detailed_info(self._registry.get(agent_id), self._registry.host)

    async def signal(self, handle: AgentHandle, signal: Signal) -> None:
        self._registry.signal(handle, signal)

    async def terminate(self, handle: AgentHandle, *, grace_s: float | None) -> ExitRecord:
        """Continues if the caller is cancelled."""
        if grace_s is not None and not 0 <= grace_s <= MAX_GRACE:
            raise invalid("/grace_s", f"must be from 0 to {MAX_GRACE:g}")
        ending = asyncio.create_task(self._registry.terminate(handle, grace_s))
        return await asyncio.shield(ending)

    async def revoke(self, agent_id: str, grant_id: str) -> AgentInfo:
        """Continues if the caller is cancelled."""
        entry = self._registry.get(agent_id)
        revocation = self._registry.revoker.revoke(entry, grant_id, context.current().principal)
        await asyncio.shield(asyncio.ensure_future(revocation))
        return detailed_info(entry, self._registry.host)


def make_requester(request_id: str) -> Requester:
    """The caller of the current context, with that request id. Raises ValidationError."""
    if not 0 < len(request_id) <= _MAX_REQUEST_ID:
        raise invalid("/request_id", f"must have 1 to {_MAX_REQUEST_ID} characters")
    caller = context.current()
    task = caller.submission
    return Requester(
        principal=caller.principal,
        request_id=request_id,
        admin="admin" in caller.scopes,
        submitter=task.principal if task else "",
        submitter_admin=task.admin if task else False,
        state_id=task.state_id if task else "",
        session_id=caller.session_id or "",
        trace_id=caller.trace_id or "",
        program=caller.program,
    )
