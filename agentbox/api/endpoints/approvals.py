"""Approvals over HTTP; agent-host stores them."""

from agentbox.api.background.approver_presence import agent_host
from agentbox.api.http.call import Call
from agentbox.api.http.reply import Reply
from agentbox.contracts.approvals import Approval, Approvals, Verdict


async def list_approvals(call: Call) -> Reply:
    return Reply(
        Approvals.from_wire(await agent_host(call.services).call_peer("approval.list", {}))
    )


async def get(call: Call) -> Reply:
    return Reply(
        Approval.from_wire(
            await agent_host(call.services).call_peer("approval.get", {"id": call.parameters["id"]})
        )
    )


async def decide(call: Call) -> Reply:
    decision = call.record(Verdict)
    params = {
        "id": call.parameters["id"],
        "verdict": decision.verdict,
        "reason": decision.reason,
        "by": call.caller.principal,
    }
    return Reply(
        Approval.from_wire(await agent_host(call.services).call_peer("approval.decide", params))
    )
