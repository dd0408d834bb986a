"""Reviews over HTTP, forwarded to the agent host, which stores the branches and decides."""

from agentbox.api.background.approver_presence import agent_host
from agentbox.api.http.call import MAX_CURSOR, Call
from agentbox.api.http.reply import Reply
from agentbox.contracts.reviews import CommitBody, Committed, Discarded, ReviewPage, Reviews

PAGE = 100
MAX_PAGE = 1_000
_COMMIT_SECONDS = 600.0  # a large review is written, and the replaced files are read


async def list_reviews(call: Call) -> Reply:
    return Reply(Reviews.from_wire(await agent_host(call.services).call_peer("review.list", {})))


async def show(call: Call) -> Reply:
    position, limit = call.integer("at", 0, 0, MAX_CURSOR), call.integer("limit", PAGE, 1, MAX_PAGE)
    params = {"agent_id": call.parameters["agent_id"], "at": position, "limit": limit}
    return Reply(
        ReviewPage.from_wire(await agent_host(call.services).call_peer("review.show", params))
    )


async def commit(call: Call) -> Reply:
    """409 lists the conflicts; 412 has the current digest."""
    params = {"digest": call.record(CommitBody).digest, **_caller_params(call)}
    return Reply(
        Committed.from_wire(
            await agent_host(call.services).call_peer("review.commit", params, _COMMIT_SECONDS)
        )
    )


async def discard(call: Call) -> Reply:
    return Reply(
        Discarded.from_wire(
            await agent_host(call.services).call_peer(
                "review.discard", _caller_params(call), _COMMIT_SECONDS
            )
        )
    )


def _caller_params(call: Call) -> dict[str, str]:
    return {"agent_id": call.parameters["agent_id"], "by": call.caller.principal}
