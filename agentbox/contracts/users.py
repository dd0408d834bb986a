"""People who operate the box: each has one role."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Protocol

from agentbox.contracts.roles import Role
from agentbox.contracts.tokens import NAME
from agentbox.core.records.bounds import bounded_text, schema_keywords
from agentbox.core.records.wire import Record, record

MAX_USERS = 1000  # disabled ones included: their names stay reserved
OPERATOR = "operator"  # the name of who has the box's first admin token; no user has it
UserName = Annotated[str, bounded_text(pattern=NAME)]
PathName = Annotated[str, schema_keywords(description="Name of a user.")]


def user_principal(name: str) -> str:
    """The principal of a user."""
    return f"urn:agentbox:user:{name}"


@record
class NewUser(Record):
    """A user to add. The name must not be that of any user before, disabled ones included."""

    name: UserName
    role: Role


@record
class RoleBody(Record):
    """The role that a user has from now on."""

    role: Role


@record
class User(Record):
    """A user. `disabled_at` None: may sign in."""

    name: str
    role: Role
    created_by: str
    created_at: datetime
    disabled_at: datetime | None


@record
class Users(Record):
    """All users, by name."""

    items: tuple[User, ...]


@record
class LoginCode(Record):
    """A code for one sign-in, for `POST /v1/session`. Only this response has it. `page` is the path
    with which a browser signs in; "" without such a page.
    """

    code: str
    expires_at: datetime
    page: str


class UserEndpoints(Protocol):
    """What the API serves for users."""

    async def list_users(self) -> Users: ...

    async def add(self, user: NewUser) -> User: ...

    async def set_role(self, name: PathName, body: RoleBody) -> User: ...

    async def disable(self, name: PathName) -> User: ...

    async def enable(self, name: PathName) -> User: ...

    async def make_code(self, name: PathName) -> LoginCode: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (NewUser, RoleBody, User, Users, LoginCode)
}
