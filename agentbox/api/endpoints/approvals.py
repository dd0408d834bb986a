"""Approvals over HTTP; agent-host stores them."""

from agentbox.api.http.request import ApiRequest
from agentbox.contracts.approvals import Approval, Approvals, Verdict


async def list_approvals(request: ApiRequest) -> Approvals:
    return Approvals(items=await request.services.agent_host.list_approvals())


async def get(request: ApiRequest) -> Approval:
    return await request.services.agent_host.get_approval(request.parameters["id"])


async def decide(request: ApiRequest) -> Approval:
    decision = request.record(Verdict)
    return await request.services.agent_host.decide_approval(
        request.parameters["id"],
        verdict=decision.verdict,
        reason=decision.reason,
        by=request.caller.principal,
    )
