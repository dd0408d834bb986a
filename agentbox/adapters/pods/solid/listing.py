"""One page of a container, from a server that pages or from one that gives all at once (P14)."""

from urllib.parse import urlsplit

from agentbox.adapters.pods.solid.answers import links
from agentbox.adapters.pods.solid.line import Line
from agentbox.adapters.pods.solid.members import CAP, JSON_LD, Member, NotReadable, members
from agentbox.adapters.runtime.http_connection import unusable
from agentbox.core.slot_errors import NotFound


async def page(line: Line, container: str, query: str, *, twice: bool) -> tuple[dict[str, Member], str | None]:
    """The members by name, and the query of the server's next page, None on its last. A root container that nobody wrote to
    is empty. Raises NotFound, and BackendError for a listing that cannot be read."""
    headers = {"Accept": JSON_LD}
    try:
        answer = await line.ask("GET", container, method="list", query=query, headers=headers, again=True)
    except NotFound:
        if container == "":
            return {}, None
        raise
    document = await line.whole(answer, "list", CAP)
    try:
        found = members(document, str(answer.url), twice=twice)
    except NotReadable as error:
        raise unusable(line.cfg, f"its listing {error}") from None
    following = next((target for rel, target in links(answer.headers) if rel == "next"), None)
    if following is None:
        return found, None
    here, there = urlsplit(str(answer.url)), urlsplit(str(answer.url.join(following)))
    if there._replace(query="", fragment="") != here._replace(query="", fragment=""):
        raise unusable(line.cfg, "the next page of its listing is at another address")
    return found, there.query
