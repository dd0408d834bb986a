"""Approvals over HTTP; agent-host stores them."""

from collections.abc import Callable

from agentbox.adapters.orchestrator.over_rpc import RpcOrchestrator
from agentbox.api.auth.access import Caller
from agentbox.contracts.approvals import Approval, Approvals, Verdict


class ApprovalHandlers:
    """`host` raises SlotUnavailable without approvals."""

    def __init__(self, host: Callable[[], RpcOrchestrator]) -> None:
        self._host = host

    async def list_approvals(self) -> Approvals:
        return Approvals.from_wire(await self._host().call_peer("approval.list", {}))

    async def get(self, id: str) -> Approval:
        return Approval.from_wire(await self._host().call_peer("approval.get", {"id": id}))

    async def decide(self, caller: Caller, id: str, verdict: Verdict) -> Approval:
        params = {
            "id": id,
            "verdict": verdict.verdict,
            "reason": verdict.reason,
            "by": caller.principal,
        }
        return Approval.from_wire(await self._host().call_peer("approval.decide", params))
