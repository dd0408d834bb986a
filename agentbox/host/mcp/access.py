"""The token of the server: it can neither decide reviews and approvals nor administer the box."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio

from agentbox.client import AsyncBoxClient
from agentbox.client.errors import ApiError, BoxUnreachable

TOKEN_NAME: Final = "mcp"
"""All servers of a box are one principal: the state of a name is the same in the next session."""
SCOPES: Final = (
    *("agents:read", "agents:write", "beads:read", "beads:write"),
    *("memory:read", "pods:read", "events:read"),
)
REVIEWS: Final = "reviews:write"
_REVOKE_SECONDS: Final = 10.0
_TTL_SECONDS: Final = 30 * 86400  # a server that was killed leaves its token behind


@asynccontextmanager
async def open_box(
    url: str, admin_token: str, *, may_commit_reviews: bool
) -> AsyncIterator[AsyncBoxClient]:
    """A client with a token that is revoked at the end. Raises ApiError, BoxUnreachable."""
    scopes = (*SCOPES, REVIEWS) if may_commit_reviews else SCOPES
    async with AsyncBoxClient(url, token=admin_token) as admin:
        created = await admin.tokens.create(TOKEN_NAME, scopes, ttl_s=_TTL_SECONDS)
    try:
        async with AsyncBoxClient(url, token=created.value) as box:
            yield box
    finally:
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _REVOKE_SECONDS):
            async with AsyncBoxClient(url, token=admin_token) as admin:
                with suppress(ApiError, BoxUnreachable):  # the box may be down by now
                    await admin.tokens.revoke(created.id)
