"""Operations of named tokens."""

from agentbox.contracts.routes.operation import read, write
from agentbox.contracts.routes.resource import Resource
from agentbox.contracts.tokens import NewToken, TokenEndpoints

_ADMIN = ("admin",)

TOKENS = Resource(
    "tokens",
    TokenEndpoints,
    operations=(
        read(
            "list_tokens",
            "GET /v1/tokens",
            "Tokens that are not revoked, without their values.",
            scope=_ADMIN,
        ),
        write(
            "create",
            "POST /v1/tokens",
            "Creates a token with scopes, an expiry and bindings. Only this response has its "
            "value.",
            route="create_token",
            scope=_ADMIN,
            body=NewToken,
            statuses=(201,),
        ),
        write(
            "enable",
            "POST /v1/tokens/{id}/enable",
            "Lets a token work again that a restore disabled.",
            route="enable_token",
            scope=_ADMIN,
        ),
        write(
            "revoke",
            "DELETE /v1/tokens/{id}",
            "Revokes a token at once.",
            route="revoke_token",
            scope=_ADMIN,
            statuses=(204,),
        ),
        write(
            "revoke_self",
            "DELETE /v1/token",
            "Revokes the named token that is sent, at once.",
            route="revoke_own_token",
            scope=("token:self",),
            statuses=(204,),
        ),
    ),
)
RESOURCES = (TOKENS,)
