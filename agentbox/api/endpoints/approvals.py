"""Approvals over HTTP; agent-host stores them."""

from agentbox.api.auth.authentication import Caller
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.approvals import Approval, Approvals, Verdict


class ApprovalHandlers:
    """Raises SlotUnavailable without approvals."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host

    async def list_approvals(self) -> Approvals:
        return Approvals(items=await self._host.list_approvals())

    async def get(self, id: str) -> Approval:
        return await self._host.get_approval(id)

    async def decide(self, caller: Caller, id: str, verdict: Verdict) -> Approval:
        return await self._host.decide_approval(
            id, verdict=verdict.verdict, reason=verdict.reason, by=caller.principal
        )
