"""Named tokens over HTTP. Only the response that creates a token contains its value."""

from agentbox.adapters.runtime.journal import BestEffortJournal
from agentbox.api.auth.authentication import Caller
from agentbox.api.auth.open_calls import OpenCalls
from agentbox.api.auth.tokens import TokenStore
from agentbox.contracts.tokens import CreatedToken, NewToken, Token, Tokens


class TokenHandlers:
    """Each change is journalled."""

    def __init__(self, tokens: TokenStore, calls: OpenCalls, journal: BestEffortJournal) -> None:
        self._tokens, self._calls, self._journal = tokens, calls, journal

    async def list_tokens(self) -> Tokens:
        return Tokens(items=await self._tokens.all())

    async def create(self, caller: Caller, token: NewToken) -> CreatedToken:
        created = await self._tokens.create(token, caller.principal)
        await self._record("token.created", created, caller)
        return created

    async def enable(self, caller: Caller, id: str) -> Token:
        """The token works from now on. One that is not disabled stays as it is."""
        token, changed = await self._tokens.enable(id)
        if changed:
            await self._record("token.enabled", token, caller)
        return token

    async def revoke(self, caller: Caller, id: str) -> None:
        """The token is rejected from now on; its sessions and open streams end."""
        revoked = await self._tokens.revoke(id)
        self._calls.check()
        await self._record("token.revoked", revoked, caller)

    async def revoke_self(self, caller: Caller) -> None:
        """The token of the caller is rejected from now on."""
        await self.revoke(caller, caller.token_id)

    async def _record(self, event: str, token: Token, caller: Caller) -> None:
        data = {
            "id": token.id,
            "name": token.name,
            "scopes": list(token.scopes),
            "by": caller.principal,
        }
        await self._journal.record(event, data)
