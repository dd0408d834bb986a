"""Reviews over HTTP. Who runs the agents keeps their branches, and decides; this passes it on."""

from agentbox.api.background.following import keeper
from agentbox.api.http.call import MAX_CURSOR, Call
from agentbox.api.http.reply import Reply
from agentbox.contracts.reviews import CommitBody, Committed, Discarded, ReviewPage, Reviews

PAGE = 100
MOST_ON_A_PAGE = 1_000
_COMMIT_SECONDS = 600.0  # a large review is written, and what it replaces is read


async def list_reviews(call: Call) -> Reply:
    return Reply(Reviews.from_wire(await keeper(call.services).ask("review.list", {})))


async def show(call: Call) -> Reply:
    at, limit = call.integer("at", 0, 0, MAX_CURSOR), call.integer("limit", PAGE, 1, MOST_ON_A_PAGE)
    asked = {"agent_id": call.parameters["agent_id"], "at": at, "limit": limit}
    return Reply(ReviewPage.from_wire(await keeper(call.services).ask("review.show", asked)))


async def commit(call: Call) -> Reply:
    """409 names the conflicts; 412 the digest that there is."""
    asked = {"digest": call.record(CommitBody).digest, **_who(call)}
    return Reply(Committed.from_wire(await keeper(call.services).ask("review.commit", asked, _COMMIT_SECONDS)))


async def discard(call: Call) -> Reply:
    return Reply(Discarded.from_wire(await keeper(call.services).ask("review.discard", _who(call), _COMMIT_SECONDS)))


def _who(call: Call) -> dict[str, str]:
    return {"agent_id": call.parameters["agent_id"], "by": call.caller.principal}
