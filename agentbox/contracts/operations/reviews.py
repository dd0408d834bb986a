"""Operations of reviews: changes of agents in their branches, and the operator's decision."""

from agentbox.contracts.review_commits import TakenBody
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
        read(
            "commits",
            "GET /v1/reviews/{agent_id}/commits",
            "Commits that the agent made in its branch, oldest first, from part `at` on, with "
            "files and diffs. Paths that are executed automatically come first. "
            "Control and invisible characters are escaped.",
            route="show_review_commits",
            scope=_READ,
        ),
        read(
            "bundle",
            "GET /v1/reviews/{agent_id}/bundle",
            "The commits as a git bundle, whose prerequisites the workspace's repository has.",
            route="read_review_bundle",
            scope=_READ,
            response="Body",
            media="any",
        ),
        read(
            "patches",
            "GET /v1/reviews/{agent_id}/patches",
            "The commits as a series of patches, in the format mboxrd of `git format-patch`.",
            route="read_review_patches",
            scope=_READ,
            response="Body",
            media="any",
        ),
        write(
            "taken",
            "POST /v1/reviews/{agent_id}/commits/taken",
            "Ends the review with that digest: the caller has put its commits into a repository.",
            route="end_review",
            scope=_WRITE,
            body=TakenBody,
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
