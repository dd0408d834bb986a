"""Named tokens over HTTP. Only the response that creates a token contains its value."""

from agentbox.api.auth.tokens import NewToken, Token, Tokens
from agentbox.api.http.call import Call
from agentbox.api.http.reply import Reply


async def list_tokens(call: Call) -> Reply:
    return Reply(Tokens(items=await call.services.tokens.all()))


async def create(call: Call) -> Reply:
    """201 with the value, only here."""
    token = await call.services.tokens.create(call.record(NewToken), call.caller.principal)
    await _journal_event(call, "token.created", token)
    return Reply(token, status=201)


async def revoke(call: Call) -> Reply:
    """204; the token is rejected from now on."""
    await _journal_event(
        call, "token.revoked", await call.services.tokens.revoke(call.parameters["id"])
    )
    return Reply(status=204)


async def _journal_event(call: Call, event: str, token: Token) -> None:
    data = {
        "id": token.id,
        "name": token.name,
        "scopes": list(token.scopes),
        "by": call.caller.principal,
    }
    await call.services.slots.journal.record(event, data)
