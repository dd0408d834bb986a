"""Routes of reviews: what agents changed in their branches, and the operator's decision on it."""

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
        summary="Changes of agents that ended, which wait for a decision; oldest first.",
    ),
    Route(
        name="show_review",
        method="GET",
        path="/v1/reviews/{agent_id}",
        scope=READ,
        handler="reviews.show",
        response="ReviewPage",
        query=("at", "limit"),
        summary="What the agent changed, from place `at` on, with diffs. What runs by itself where it lands is first. Control "
        "and invisible characters of the agent's are escaped.",
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
        summary="Takes exactly what has that digest into the workspace: all of it, or nothing where the workspace has changed.",
    ),
    Route(
        name="discard_review",
        method="POST",
        path="/v1/reviews/{agent_id}/discard",
        scope=WRITE,
        handler="reviews.discard",
        response="Discarded",
        summary="Removes the branch with its changes.",
    ),
)
