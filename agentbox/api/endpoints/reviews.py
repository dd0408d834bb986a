"""Reviews over HTTP, forwarded to the agent host, which stores the branches and decides."""

from dataclasses import replace

from agentbox.api.auth.authentication import Caller
from agentbox.api.model_usage import ModelUsageReader
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.reviews import CommitBody, Committed, Discarded, ReviewPage, Reviews


class ReviewHandlers:
    """Raises SlotUnavailable without reviews."""

    def __init__(self, host: AgentHost, models: ModelUsageReader) -> None:
        self._host, self._models = host, models

    async def list_reviews(self) -> Reviews:
        summaries = await self._host.list_reviews()
        used = await self._models.by_agent_id([row.agent_id for row in summaries])
        return Reviews(
            items=tuple(replace(row, models=used.get(row.agent_id)) for row in summaries)
        )

    async def show(self, agent_id: str, at: int, limit: int) -> ReviewPage:
        page = await self._host.show_review(agent_id, at=at, limit=limit)
        used = await self._models.by_agent_id([agent_id])
        return replace(page, summary=replace(page.summary, models=used.get(agent_id)))

    async def commit(self, caller: Caller, agent_id: str, change: CommitBody) -> Committed:
        """409 lists the conflicts; 412 has the current digest."""
        return await self._host.commit_review(agent_id, digest=change.digest, by=caller.principal)

    async def discard(self, caller: Caller, agent_id: str) -> Discarded:
        return await self._host.discard_review(agent_id, by=caller.principal)
