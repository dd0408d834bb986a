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
        summary="Tokens that are not revoked, without their values.",
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
        summary="Creates a token with scopes, an expiry and bindings. Only this response has its "
        "value.",
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
