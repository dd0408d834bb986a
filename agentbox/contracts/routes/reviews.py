"""Routes of reviews: changes of agents in their branches, and the operator's decision."""

from agentbox.contracts.routes.route import Route

READ, WRITE = ("agents:read",), ("reviews:write",)

REVIEWS: tuple[Route, ...] = (
    Route(
        name="list_reviews",
        method="GET",
        path="/v1/reviews",
        scope=READ,
        handler="reviews.list_reviews",
        response="Reviews",
        summary="Changes of ended agents that wait for a decision; oldest first.",
    ),
    Route(
        name="show_review",
        method="GET",
        path="/v1/reviews/{agent_id}",
        scope=READ,
        handler="reviews.show",
        response="ReviewPage",
        query=("at", "limit"),
        summary="Changes of the agent, from index `at` on, with diffs. Paths that are executed "
        "automatically come first. Control and invisible characters are escaped.",
    ),
    Route(
        name="commit_review",
        method="POST",
        path="/v1/reviews/{agent_id}/commit",
        scope=WRITE,
        handler="reviews.commit",
        request="CommitBody",
        response="Committed",
        body_limit=None,
        summary="Applies exactly the changes with that digest to the workspace: all, or nothing "
        "if the workspace has changed.",
    ),
    Route(
        name="discard_review",
        method="POST",
        path="/v1/reviews/{agent_id}/discard",
        scope=WRITE,
        handler="reviews.discard",
        response="Discarded",
        summary="Deletes the branch with its changes.",
    ),
)
