"""Reviews over HTTP, forwarded to the agent host, which stores the branches and decides."""

from agentbox.api.background.approver_presence import agent_host
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.arguments import MAX_CURSOR
from agentbox.contracts.reviews import CommitBody, Committed, Discarded, ReviewPage, Reviews

PAGE = 100
MAX_PAGE = 1_000
_COMMIT_SECONDS = 600.0  # a large review is written, and the replaced files are read


async def list_reviews(request: ApiRequest) -> Reviews:
    return Reviews.from_wire(await agent_host(request.services).call_peer("review.list", {}))


async def show(request: ApiRequest) -> ReviewPage:
    position, limit = (
        request.integer("at", 0, 0, MAX_CURSOR),
        request.integer("limit", PAGE, 1, MAX_PAGE),
    )
    params = {"agent_id": request.parameters["agent_id"], "at": position, "limit": limit}
    return ReviewPage.from_wire(await agent_host(request.services).call_peer("review.show", params))


async def commit(request: ApiRequest) -> Committed:
    """409 lists the conflicts; 412 has the current digest."""
    params = {"digest": request.record(CommitBody).digest, **_caller_params(request)}
    return Committed.from_wire(
        await agent_host(request.services).call_peer("review.commit", params, _COMMIT_SECONDS)
    )


async def discard(request: ApiRequest) -> Discarded:
    return Discarded.from_wire(
        await agent_host(request.services).call_peer(
            "review.discard", _caller_params(request), _COMMIT_SECONDS
        )
    )


def _caller_params(request: ApiRequest) -> dict[str, str]:
    return {"agent_id": request.parameters["agent_id"], "by": request.caller.principal}
