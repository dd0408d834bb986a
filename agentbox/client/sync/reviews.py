# Written by tools/sync_client.py from async_client/reviews.py.
# Written by tools/client_operations.py from agentbox/contracts.

"""Reviews of agents' changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode

if TYPE_CHECKING:
    from agentbox.client.sync.request_sender import RequestSender
    from agentbox.contracts.review_commits import CommitsPage
    from agentbox.contracts.reviews import Committed, Discarded, ReviewPage, Reviews


class ReviewsClient:
    """Reviews of agents' changes. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: RequestSender) -> None:
        self._box = box

    def list(self) -> Reviews:
        """Changes of ended agents that wait for a decision; oldest first."""
        from agentbox.contracts.reviews import Reviews

        response = self._box.request("list_reviews")
        return decode(Reviews, response)

    def show(self, agent_id: str, *, at: int = 0, limit: int = 100) -> ReviewPage:
        """Changes of the agent, from index `at` on, with diffs. Paths that are executed
        automatically come first. Control and invisible characters are escaped."""
        from agentbox.contracts.reviews import ReviewPage

        response = self._box.request(
            "show_review", {"agent_id": agent_id}, query={"at": at, "limit": limit}
        )
        return decode(ReviewPage, response)

    def commit(self, agent_id: str, digest: str) -> Committed:
        """Applies exactly the changes with that digest to the workspace: all, or nothing if the
        workspace has changed."""
        from agentbox.contracts.reviews import Committed

        response = self._box.request(
            "commit_review", {"agent_id": agent_id}, body={"digest": digest}
        )
        return decode(Committed, response)

    def commits(self, agent_id: str, *, at: int = 0, limit: int = 100) -> CommitsPage:
        """Commits that the agent made in its branch, oldest first, from part `at` on, with files
        and diffs. Paths that are executed automatically come first. Control and invisible
        characters are escaped."""
        from agentbox.contracts.review_commits import CommitsPage

        response = self._box.request(
            "show_review_commits", {"agent_id": agent_id}, query={"at": at, "limit": limit}
        )
        return decode(CommitsPage, response)

    def bundle(self, agent_id: str, *, rest: bool = False) -> bytes:
        """The commits as a git bundle, whose prerequisites the workspace's repository has."""
        response = self._box.request(
            "read_review_bundle",
            {"agent_id": agent_id},
            query={"rest": rest},
            headers={"Accept": "*/*"},
        )
        return response.content

    def patches(self, agent_id: str, *, rest: bool = False) -> bytes:
        """The commits as a series of patches, in the format mboxrd of `git format-patch`."""
        response = self._box.request(
            "read_review_patches",
            {"agent_id": agent_id},
            query={"rest": rest},
            headers={"Accept": "*/*"},
        )
        return response.content

    def taken(
        self, agent_id: str, digest: str, tip: str, ref: str, *, with_rest: bool = False
    ) -> Committed:
        """Ends the review with that digest: the caller has put its commits into a repository."""
        from agentbox.contracts.reviews import Committed

        response = self._box.request(
            "end_review",
            {"agent_id": agent_id},
            body={"digest": digest, "tip": tip, "ref": ref, "with_rest": with_rest},
        )
        return decode(Committed, response)

    def discard(self, agent_id: str) -> Discarded:
        """Deletes the branch with its changes."""
        from agentbox.contracts.reviews import Discarded

        response = self._box.request("discard_review", {"agent_id": agent_id})
        return decode(Discarded, response)
