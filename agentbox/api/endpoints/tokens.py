"""Named tokens over HTTP. Only the response that creates a token contains its value."""

from agentbox.api.http.request import ApiRequest
from agentbox.contracts.tokens import CreatedToken, NewToken, Token, Tokens


async def list_tokens(request: ApiRequest) -> Tokens:
    return Tokens(items=await request.services.tokens.all())


async def create(request: ApiRequest) -> CreatedToken:
    """201 with the value, only here."""
    token = await request.services.tokens.create(request.record(NewToken), request.caller.principal)
    await _journal_event(request, "token.created", token)
    return token


async def revoke(request: ApiRequest) -> None:
    """204; the token is rejected from now on."""
    await _journal_event(
        request, "token.revoked", await request.services.tokens.revoke(request.parameters["id"])
    )


async def _journal_event(request: ApiRequest, event: str, token: Token) -> None:
    data = {
        "id": token.id,
        "name": token.name,
        "scopes": list(token.scopes),
        "by": request.caller.principal,
    }
    await request.services.slots.journal.record(event, data)
