"""Reviews over HTTP, forwarded to the agent host, which stores the branches and decides."""

from collections.abc import Callable

from agentbox.adapters.orchestrator.over_rpc import RpcOrchestrator
from agentbox.api.auth.access import Caller
from agentbox.contracts.reviews import CommitBody, Committed, Discarded, ReviewPage, Reviews

_COMMIT_SECONDS = 600.0  # a large review is written, and the replaced files are read


class ReviewHandlers:
    """`host` raises SlotUnavailable without reviews."""

    def __init__(self, host: Callable[[], RpcOrchestrator]) -> None:
        self._host = host

    async def list_reviews(self) -> Reviews:
        return Reviews.from_wire(await self._host().call_peer("review.list", {}))

    async def show(self, agent_id: str, at: int, limit: int) -> ReviewPage:
        params = {"agent_id": agent_id, "at": at, "limit": limit}
        return ReviewPage.from_wire(await self._host().call_peer("review.show", params))

    async def commit(self, caller: Caller, agent_id: str, change: CommitBody) -> Committed:
        """409 lists the conflicts; 412 has the current digest."""
        params = {"digest": change.digest, "agent_id": agent_id, "by": caller.principal}
        return Committed.from_wire(
            await self._host().call_peer("review.commit", params, _COMMIT_SECONDS)
        )

    async def discard(self, caller: Caller, agent_id: str) -> Discarded:
        params = {"agent_id": agent_id, "by": caller.principal}
        return Discarded.from_wire(
            await self._host().call_peer("review.discard", params, _COMMIT_SECONDS)
        )
