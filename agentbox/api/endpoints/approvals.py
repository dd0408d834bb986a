"""Approvals over HTTP. agent-host keeps them."""

from agentbox.api.background.following import keeper
from agentbox.api.http.call import Call
from agentbox.api.http.reply import Reply
from agentbox.contracts.approvals import Approval, Approvals, Verdict


async def list_approvals(call: Call) -> Reply:
    return Reply(Approvals.from_wire(await keeper(call.services).ask("approval.list", {})))


async def get(call: Call) -> Reply:
    return Reply(Approval.from_wire(await keeper(call.services).ask("approval.get", {"id": call.parameters["id"]})))


async def decide(call: Call) -> Reply:
    said = call.record(Verdict)
    asked = {"id": call.parameters["id"], "verdict": said.verdict, "reason": said.reason, "by": call.caller.principal}
    return Reply(Approval.from_wire(await keeper(call.services).ask("approval.decide", asked)))
