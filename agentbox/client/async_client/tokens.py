# Written by tools/client_operations.py from agentbox/contracts.

"""Named tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentbox.client.transport import decode, without_none

if TYPE_CHECKING:
    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.tokens import CreatedToken, Token, Tokens


class AsyncTokensClient:
    """Named tokens. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def list(self) -> Tokens:
        """Tokens that are not revoked, without their values."""
        from agentbox.contracts.tokens import Tokens

        response = await self._box.request("list_tokens")
        return decode(Tokens, response)

    async def create(
        self,
        name: str,
        scopes: Sequence[str],
        *,
        ttl_s: int | None = None,
        pod_prefix: str = "",
        memory_prefix: str = "",
        event_source: str = "",
        rate: int = 0,
        origin_box: str = "",
        user: str = "",
    ) -> CreatedToken:
        """Creates a token with scopes, an expiry and bindings. Only this response has its value."""
        from agentbox.contracts.tokens import CreatedToken

        response = await self._box.request(
            "create_token",
            body={
                "name": name,
                "scopes": scopes,
                "pod_prefix": pod_prefix,
                "memory_prefix": memory_prefix,
                "event_source": event_source,
                "rate": rate,
                "origin_box": origin_box,
                "user": user,
                **without_none({"ttl_s": ttl_s}),
            },
        )
        return decode(CreatedToken, response)

    async def enable(self, id: str) -> Token:
        """Lets a token work again that a restore disabled."""
        from agentbox.contracts.tokens import Token

        response = await self._box.request("enable_token", {"id": id})
        return decode(Token, response)

    async def revoke(self, id: str) -> None:
        """Revokes a token at once."""
        await self._box.request("revoke_token", {"id": id})

    async def revoke_self(self) -> None:
        """Revokes the named token that is sent, at once."""
        await self._box.request("revoke_own_token")
