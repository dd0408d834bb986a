"""Operations of reviews: changes of agents in their branches, and the operator's decision."""

from agentbox.contracts.reviews import CommitBody, ReviewEndpoints
from agentbox.contracts.routes.operation import read, write
from agentbox.contracts.routes.resource import Resource

_READ, _WRITE = ("agents:read",), ("reviews:write",)

REVIEWS = Resource(
    "reviews",
    ReviewEndpoints,
    operations=(
        read(
            "list_reviews",
            "GET /v1/reviews",
            "Changes of ended agents that wait for a decision; oldest first.",
            scope=_READ,
        ),
        read(
            "show",
            "GET /v1/reviews/{agent_id}",
            "Changes of the agent, from index `at` on, with diffs. Paths that are executed "
            "automatically come first. Control and invisible characters are escaped.",
            route="show_review",
            scope=_READ,
        ),
        write(
            "commit",
            "POST /v1/reviews/{agent_id}/commit",
            "Applies exactly the changes with that digest to the workspace: all, or nothing "
            "if the workspace has changed.",
            route="commit_review",
            scope=_WRITE,
            body=CommitBody,
        ),
        write(
            "discard",
            "POST /v1/reviews/{agent_id}/discard",
            "Deletes the branch with its changes.",
            route="discard_review",
            scope=_WRITE,
        ),
    ),
)
RESOURCES = (REVIEWS,)
