"""Reviews over HTTP, forwarded to the agent host, which stores the branches and decides."""

from agentbox.api.auth.authentication import Caller
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.reviews import CommitBody, Committed, Discarded, ReviewPage, Reviews


class ReviewHandlers:
    """Raises SlotUnavailable without reviews."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host

    async def list_reviews(self) -> Reviews:
        return Reviews(items=await self._host.list_reviews())

    async def show(self, agent_id: str, at: int, limit: int) -> ReviewPage:
        return await self._host.show_review(agent_id, at=at, limit=limit)

    async def commit(self, caller: Caller, agent_id: str, change: CommitBody) -> Committed:
        """409 lists the conflicts; 412 has the current digest."""
        return await self._host.commit_review(agent_id, digest=change.digest, by=caller.principal)

    async def discard(self, caller: Caller, agent_id: str) -> Discarded:
        return await self._host.discard_review(agent_id, by=caller.principal)
