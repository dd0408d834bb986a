"""Pages of agentbox.web over HTTP."""

from agentbox.adapters.errors import NotFound
from agentbox.api.call import Call
from agentbox.api.reply import Reply
from agentbox.web.pages import POLICY, page


async def serve(call: Call) -> Reply:
    """Any name but those of pages is 404."""
    name = call.parameters["name"]
    if (found := page(name)) is None:
        raise NotFound("cannot find this page", resource="page", id=name)
    body, media_type = found
    own = (("Content-Security-Policy", POLICY), ("Cross-Origin-Opener-Policy", "same-origin"))
    return Reply(body, headers=own, media_type=media_type)
