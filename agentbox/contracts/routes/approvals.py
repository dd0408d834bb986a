"""Routes of approvals: actions of agents that wait for a decision."""

from agentbox.contracts.routes.route import Route

READ, WRITE = ("approvals:read",), ("approvals:write",)

APPROVALS: tuple[Route, ...] = (
    Route(
        name="list_approvals",
        method="GET",
        path="/v1/approvals",
        scope=READ,
        handler="approvals.list_approvals",
        response="Approvals",
        summary="Pending actions, and those of the last day; oldest first.",
    ),
    Route(
        name="get_approval",
        method="GET",
        path="/v1/approvals/{id}",
        scope=READ,
        handler="approvals.get",
        response="Approval",
        summary="One approval, with its real parameters.",
    ),
    Route(
        name="decide_approval",
        method="POST",
        path="/v1/approvals/{id}",
        scope=WRITE,
        handler="approvals.decide",
        request="Verdict",
        response="Approval",
        body_limit=None,
        summary="Approves one use, or denies it. Clients with this scope that follow "
        "`/v1/events/stream` are notified; without any, such actions are denied at once. "
        "409 if it is already decided.",
    ),
)
