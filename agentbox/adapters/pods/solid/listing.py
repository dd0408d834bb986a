"""One page of a container, for servers with and without paging (P14)."""

from urllib.parse import urlsplit

from agentbox.adapters.pods.solid.connection import SolidConnection
from agentbox.adapters.pods.solid.members import (
    JSON_LD,
    MAX_DOCUMENT,
    ContainerMember,
    UnreadableListing,
    parse_members,
)
from agentbox.adapters.pods.solid.responses import parse_links
from agentbox.adapters.runtime.http_connection import unusable_slot
from agentbox.core.slot_errors import NotFound


async def fetch_page(
    connection: SolidConnection, container: str, query: str, *, double_encoded: bool
) -> tuple[dict[str, ContainerMember], str | None]:
    """Return the members by name, and the query of the next page, None on the last. A missing root
    container is empty. Raises NotFound, and BackendError for an unreadable listing."""
    headers = {"Accept": JSON_LD}
    try:
        response = await connection.request(
            "GET", container, method="list", query=query, headers=headers, idempotent=True
        )
    except NotFound:
        if container == "":
            return {}, None
        raise
    document = await connection.read_body(response, "list", MAX_DOCUMENT)
    try:
        by_name = parse_members(document, str(response.url), double_encoded=double_encoded)
    except UnreadableListing as error:
        raise unusable_slot(connection.cfg, f"its listing {error}") from None
    next_link = next(
        (target for rel, target in parse_links(response.headers) if rel == "next"), None
    )
    if next_link is None:
        return by_name, None
    page_url, next_url = urlsplit(str(response.url)), urlsplit(str(response.url.join(next_link)))
    if next_url._replace(query="", fragment="") != page_url._replace(query="", fragment=""):
        raise unusable_slot(connection.cfg, "the next page of its listing is at another address")
    return by_name, next_url.query
