"""Operations of users."""

from functools import partial

from agentbox.contracts.routes import operation
from agentbox.contracts.routes.resource import Resource
from agentbox.contracts.users import NewUser, RoleBody, UserEndpoints

_SCOPE = ("users:admin",)
_write = partial(operation.write, scope=_SCOPE)

USERS = Resource(
    "users",
    UserEndpoints,
    operations=(
        operation.read(
            "list_users", "GET /v1/users", "Users with their roles, by name.", scope=_SCOPE
        ),
        _write(
            "add",
            "POST /v1/users",
            "Adds a user with a role. 409 for a name that any user has had; 507 beyond 1,000.",
            route="add_user",
            body=NewUser,
            statuses=(201,),
        ),
        _write(
            "set_role",
            "POST /v1/users/{name}/role",
            "Gives a user another role, at once. 409 for the last admin.",
            route="set_user_role",
            body=RoleBody,
        ),
        _write(
            "disable",
            "POST /v1/users/{name}/disable",
            "Ends a user's tokens, sessions and open streams, at once; no other user gets the "
            "name. 409 for the last admin.",
            route="disable_user",
        ),
        _write(
            "enable",
            "POST /v1/users/{name}/enable",
            "Lets a disabled user sign in again. Tokens and sessions do not come back.",
            route="enable_user",
        ),
        _write(
            "make_code",
            "POST /v1/users/{name}/login",
            "Makes a code with which the user signs in once, within 15 minutes. An earlier code "
            "of the user ends.",
            route="make_login_code",
        ),
    ),
)
RESOURCES = (USERS,)
