"""Approvals over HTTP; agent-host stores them."""

from agentbox.api.background.approver_presence import agent_host
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.approvals import Approval, Approvals, Verdict


async def list_approvals(request: ApiRequest) -> Approvals:
    return Approvals.from_wire(await agent_host(request.services).call_peer("approval.list", {}))


async def get(request: ApiRequest) -> Approval:
    return Approval.from_wire(
        await agent_host(request.services).call_peer(
            "approval.get", {"id": request.parameters["id"]}
        )
    )


async def decide(request: ApiRequest) -> Approval:
    decision = request.record(Verdict)
    params = {
        "id": request.parameters["id"],
        "verdict": decision.verdict,
        "reason": decision.reason,
        "by": request.caller.principal,
    }
    return Approval.from_wire(
        await agent_host(request.services).call_peer("approval.decide", params)
    )
