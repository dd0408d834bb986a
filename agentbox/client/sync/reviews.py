# Written by tools/sync_client.py from async_client/reviews.py.
"""What agents changed, and the decision on it: reviews and approvals."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentbox.client.sync.api_caller import ApiCaller


class ReviewsClient:
    """Reviews of agents' changes. Returns records as JSON. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: ApiCaller) -> None:
        self._box = box

    def list(self) -> Sequence[Mapping[str, Any]]:
        """Summaries of pending reviews, oldest first."""
        items: Sequence[Mapping[str, Any]] = (self._box.call("list_reviews"))["items"]
        return items

    def show(self, agent_id: str, *, at: int = 0, limit: int = 100) -> Mapping[str, Any]:
        """`summary`, `changes` from position `at`, `left_out`, and `next`: the position of the next
        page, or None."""
        query = {"at": at, "limit": limit}
        review: Mapping[str, Any] = self._box.call(
            "show_review", {"agent_id": agent_id}, query=query
        )
        return review

    def commit(self, agent_id: str, digest: str) -> Mapping[str, Any]:
        """Commits the review with this digest. ApiError 409 has `problem["conflicts"]`, ApiError
        412 the current digest."""
        outcome: Mapping[str, Any] = self._box.call(
            "commit_review", {"agent_id": agent_id}, body={"digest": digest}
        )
        return outcome

    def discard(self, agent_id: str) -> Mapping[str, Any]:
        """Discards the changes permanently."""
        outcome: Mapping[str, Any] = self._box.call("discard_review", {"agent_id": agent_id})
        return outcome


class ApprovalsClient:
    """Actions of agents that require an approval. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: ApiCaller) -> None:
        self._box = box

    def list(self) -> Sequence[Mapping[str, Any]]:
        """Pending approvals and those decided within a day, oldest first."""
        items: Sequence[Mapping[str, Any]] = (self._box.call("list_approvals"))["items"]
        return items

    def get(self, approval_id: str) -> Mapping[str, Any]:
        """One approval."""
        approval: Mapping[str, Any] = self._box.call("get_approval", {"id": approval_id})
        return approval

    def decide(self, approval_id: str, verdict: str, reason: str = "") -> Mapping[str, Any]:
        """`verdict`: approve or deny. ApiError 409 if already decided."""
        body = {"verdict": verdict, "reason": reason}
        approval: Mapping[str, Any] = self._box.call(
            "decide_approval", {"id": approval_id}, body=body
        )
        return approval
