"""Reviews over HTTP, forwarded to the agent host, which stores the branches and decides."""

from agentbox.api.http.request import ApiRequest
from agentbox.contracts.arguments import MAX_CURSOR
from agentbox.contracts.reviews import CommitBody, Committed, Discarded, ReviewPage, Reviews

PAGE = 100
MAX_PAGE = 1_000


async def list_reviews(request: ApiRequest) -> Reviews:
    return Reviews(items=await request.services.agent_host.list_reviews())


async def show(request: ApiRequest) -> ReviewPage:
    return await request.services.agent_host.show_review(
        request.parameters["agent_id"],
        at=request.integer("at", 0, 0, MAX_CURSOR),
        limit=request.integer("limit", PAGE, 1, MAX_PAGE),
    )


async def commit(request: ApiRequest) -> Committed:
    """409 lists the conflicts; 412 has the current digest."""
    return await request.services.agent_host.commit_review(
        request.parameters["agent_id"],
        digest=request.record(CommitBody).digest,
        by=request.caller.principal,
    )


async def discard(request: ApiRequest) -> Discarded:
    return await request.services.agent_host.discard_review(
        request.parameters["agent_id"], by=request.caller.principal
    )
