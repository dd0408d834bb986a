"""Approvals over HTTP. agent-host keeps them."""

from agentbox.api.approval_records import Approval, Approvals, Verdict
from agentbox.api.call import Call
from agentbox.api.following import keeper
from agentbox.api.reply import Reply


async def list_approvals(call: Call) -> Reply:
    return Reply(Approvals.from_wire(await keeper(call.services).ask("approval.list", {})))


async def get(call: Call) -> Reply:
    return Reply(Approval.from_wire(await keeper(call.services).ask("approval.get", {"id": call.parameters["id"]})))


async def decide(call: Call) -> Reply:
    said = call.record(Verdict)
    asked = {"id": call.parameters["id"], "verdict": said.verdict, "reason": said.reason, "by": call.caller.principal}
    return Reply(Approval.from_wire(await keeper(call.services).ask("approval.decide", asked)))
