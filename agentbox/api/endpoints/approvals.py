"""Approvals over HTTP; agent-host stores them."""

from starlette.responses import Response

from agentbox.api.background.approver_presence import agent_host
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.approvals import Approval, Approvals, Verdict
from agentbox.core.http.responses import RecordResponse


async def list_approvals(request: ApiRequest) -> Response:
    return RecordResponse(
        Approvals.from_wire(await agent_host(request.services).call_peer("approval.list", {}))
    )


async def get(request: ApiRequest) -> Response:
    return RecordResponse(
        Approval.from_wire(
            await agent_host(request.services).call_peer(
                "approval.get", {"id": request.parameters["id"]}
            )
        )
    )


async def decide(request: ApiRequest) -> Response:
    decision = request.record(Verdict)
    params = {
        "id": request.parameters["id"],
        "verdict": decision.verdict,
        "reason": decision.reason,
        "by": request.caller.principal,
    }
    return RecordResponse(
        Approval.from_wire(await agent_host(request.services).call_peer("approval.decide", params))
    )
