# Written by tools/client_operations.py from agentbox/contracts.

"""Reviews of agents' changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode

if TYPE_CHECKING:
    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.review_commits import CommitsPage
    from agentbox.contracts.reviews import Committed, Discarded, ReviewPage, Reviews


class AsyncReviewsClient:
    """Reviews of agents' changes. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def list(self) -> Reviews:
        """Changes of ended agents that wait for a decision; oldest first."""
        from agentbox.contracts.reviews import Reviews

        response = await self._box.request("list_reviews")
        return decode(Reviews, response)

    async def show(self, agent_id: str, *, at: int = 0, limit: int = 100) -> ReviewPage:
        """Changes of the agent, from index `at` on, with diffs. Paths that are executed
        automatically come first. Control and invisible characters are escaped."""
        from agentbox.contracts.reviews import ReviewPage

        response = await self._box.request(
            "show_review", {"agent_id": agent_id}, query={"at": at, "limit": limit}
        )
        return decode(ReviewPage, response)

    async def commit(self, agent_id: str, digest: str) -> Committed:
        """Applies exactly the changes with that digest to the workspace: all, or nothing if the
        workspace has changed."""
        from agentbox.contracts.reviews import Committed

        response = await self._box.request(
            "commit_review", {"agent_id": agent_id}, body={"digest": digest}
        )
        return decode(Committed, response)

    async def commits(self, agent_id: str, *, at: int = 0, limit: int = 100) -> CommitsPage:
        """Commits that the agent made in its branch, oldest first, from part `at` on, with files
        and diffs. Paths that are executed automatically come first. Control and invisible
        characters are escaped."""
        from agentbox.contracts.review_commits import CommitsPage

        response = await self._box.request(
            "show_review_commits", {"agent_id": agent_id}, query={"at": at, "limit": limit}
        )
        return decode(CommitsPage, response)

    async def bundle(self, agent_id: str, *, rest: bool = False) -> bytes:
        """The commits as a git bundle, whose prerequisites the workspace's repository has."""
        response = await self._box.request(
            "read_review_bundle",
            {"agent_id": agent_id},
            query={"rest": rest},
            headers={"Accept": "*/*"},
        )
        return response.content

    async def patches(self, agent_id: str, *, rest: bool = False) -> bytes:
        """The commits as a series of patches, in the format mboxrd of `git format-patch`."""
        response = await self._box.request(
            "read_review_patches",
            {"agent_id": agent_id},
            query={"rest": rest},
            headers={"Accept": "*/*"},
        )
        return response.content

    async def taken(
        self, agent_id: str, digest: str, tip: str, ref: str, *, with_rest: bool = False
    ) -> Committed:
        """Ends the review with that digest: the caller has put its commits into a repository."""
        from agentbox.contracts.reviews import Committed

        response = await self._box.request(
            "end_review",
            {"agent_id": agent_id},
            body={"digest": digest, "tip": tip, "ref": ref, "with_rest": with_rest},
        )
        return decode(Committed, response)

    async def discard(self, agent_id: str) -> Discarded:
        """Deletes the branch with its changes."""
        from agentbox.contracts.reviews import Discarded

        response = await self._box.request("discard_review", {"agent_id": agent_id})
        return decode(Discarded, response)
