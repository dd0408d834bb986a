"""Routes of named tokens."""

from agentbox.contracts.routes.route import Route

ADMIN = ("admin",)

TOKENS: tuple[Route, ...] = (
    Route(
        name="list_tokens",
        method="GET",
        path="/v1/tokens",
        scope=ADMIN,
        handler="tokens.list_tokens",
        response="Tokens",
        summary="Every token that was not revoked, without its value.",
    ),
    Route(
        name="create_token",
        method="POST",
        path="/v1/tokens",
        scope=ADMIN,
        handler="tokens.create",
        request="NewToken",
        response="MadeToken",
        statuses=(201,),
        body_limit=None,
        summary="Makes a token with scopes, an end and bindings. Its value is in this answer and nowhere else.",
    ),
    Route(
        name="revoke_token",
        method="DELETE",
        path="/v1/tokens/{id}",
        scope=ADMIN,
        handler="tokens.revoke",
        statuses=(204,),
        summary="Revokes a token at once.",
    ),
)
