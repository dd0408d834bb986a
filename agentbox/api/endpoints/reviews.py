"""Reviews over HTTP, forwarded to the agent host, which stores the branches and decides."""

from collections.abc import AsyncIterator
from dataclasses import replace

from starlette.responses import Response

from agentbox.api.auth.authentication import Caller
from agentbox.api.model_usage import ModelUsageReader
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.review_commits import CommitsFileName, CommitsPage, TakenBody
from agentbox.contracts.reviews import CommitBody, Committed, Discarded, ReviewPage, Reviews
from agentbox.core.http.responses import PiecesResponse
from agentbox.core.slot_errors import BackendError

BUNDLE, PATCHES = "application/x-git-bundle", "application/mbox"
_CHUNK = 1 << 20  # bytes that are asked for at once


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

    async def commits(self, agent_id: str, at: int, limit: int) -> CommitsPage:
        return await self._host.show_commits(agent_id, at=at, limit=limit)

    async def bundle(self, agent_id: str, rest: bool) -> Response:
        return await self._file(agent_id, "rest-bundle" if rest else "bundle", BUNDLE)

    async def patches(self, agent_id: str, rest: bool) -> Response:
        return await self._file(agent_id, "rest-patches" if rest else "patches", PATCHES)

    async def taken(self, caller: Caller, agent_id: str, change: TakenBody) -> Committed:
        """409 lists the paths that no commit has; 412 has the current digest."""
        return await self._host.end_review(
            agent_id,
            digest=change.digest,
            tip=change.tip,
            ref=change.ref,
            with_rest=change.with_rest,
            by=caller.principal,
        )

    async def discard(self, caller: Caller, agent_id: str) -> Discarded:
        return await self._host.discard_review(agent_id, by=caller.principal)

    async def _file(self, agent_id: str, name: CommitsFileName, media: str) -> Response:
        first = await self._host.read_commits(agent_id, name=name, at=0, limit=_CHUNK)

        async def pieces() -> AsyncIterator[bytes]:
            data, sent = first.data, 0
            while True:
                yield data
                sent += len(data)
                if sent >= first.size:
                    return
                chunk = await self._host.read_commits(agent_id, name=name, at=sent, limit=_CHUNK)
                if chunk.sha256 != first.sha256 or not chunk.data:
                    detail = f"cannot read the commits of {agent_id}: they have changed"
                    raise BackendError(detail, slot="orchestrator", impl="")
                data = chunk.data

        headers = (
            ("Content-Type", media),
            ("ETag", f'"{first.sha256}"'),
            ("Content-Security-Policy", "sandbox"),
            ("Cache-Control", "private, no-cache"),
        )
        return PiecesResponse(pieces(), first.size, 200, headers)
