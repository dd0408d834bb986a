"""Pages of agentbox.api.pages over HTTP."""

from agentbox.api.http.call import Call
from agentbox.api.http.reply import Reply
from agentbox.api.pages.pages import POLICY, read_page
from agentbox.core.slot_errors import NotFound


async def serve(call: Call) -> Reply:
    """Unknown names are 404."""
    name = call.parameters["name"]
    if (content := read_page(name)) is None:
        raise NotFound("cannot find this page", resource="page", id=name)
    body, media_type = content
    headers = (("Content-Security-Policy", POLICY), ("Cross-Origin-Opener-Policy", "same-origin"))
    return Reply(body, headers=headers, media_type=media_type)
