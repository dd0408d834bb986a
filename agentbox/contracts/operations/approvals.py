"""Operations of approvals: actions of agents that wait for a decision."""

from agentbox.contracts.approvals import ApprovalEndpoints, Verdict
from agentbox.contracts.routes.operation import read, write
from agentbox.contracts.routes.resource import Resource

APPROVALS = Resource(
    "approvals",
    ApprovalEndpoints,
    operations=(
        read(
            "list_approvals",
            "GET /v1/approvals",
            "Pending actions, and those of the last day; oldest first.",
        ),
        read(
            "get",
            "GET /v1/approvals/{id}",
            "One approval, with its real parameters.",
            route="get_approval",
        ),
        write(
            "decide",
            "POST /v1/approvals/{id}",
            "Approves one use, or denies it. Clients with this scope that follow "
            "`/v1/events/stream` are notified; without any, such actions are denied at once. "
            "409 if it is already decided.",
            route="decide_approval",
            body=Verdict,
        ),
    ),
)
RESOURCES = (APPROVALS,)
