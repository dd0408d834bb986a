"""Named tokens over HTTP. Only the response that creates a token contains its value."""

from starlette.responses import Response

from agentbox.api.http.request import ApiRequest
from agentbox.contracts.tokens import NewToken, Token, Tokens
from agentbox.core.http.responses import RecordResponse


async def list_tokens(request: ApiRequest) -> Response:
    return RecordResponse(Tokens(items=await request.services.tokens.all()))


async def create(request: ApiRequest) -> Response:
    """201 with the value, only here."""
    token = await request.services.tokens.create(request.record(NewToken), request.caller.principal)
    await _journal_event(request, "token.created", token)
    return RecordResponse(token, 201)


async def revoke(request: ApiRequest) -> Response:
    """204; the token is rejected from now on."""
    await _journal_event(
        request, "token.revoked", await request.services.tokens.revoke(request.parameters["id"])
    )
    return Response(status_code=204)


async def _journal_event(request: ApiRequest, event: str, token: Token) -> None:
    data = {
        "id": token.id,
        "name": token.name,
        "scopes": list(token.scopes),
        "by": request.caller.principal,
    }
    await request.services.slots.journal.record(event, data)
