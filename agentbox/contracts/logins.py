"""Sessions of people: a cookie and a key, from a token or a code."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Protocol

from agentbox.contracts.arguments import Id
from agentbox.contracts.roles import Role
from agentbox.contracts.users import LoginCode
from agentbox.core.records.bounds import bounded_text
from agentbox.core.records.wire import Record, record

COOKIE = "agentbox_session"
KEY_HEADER = "Agentbox-Session-Key"
MAX_LOGINS = 10  # of one user; the one that was used least recently ends
CODE_SECONDS = 900  # of a login link
PAGE_CODE_SECONDS = 60  # of a code that a caller makes for itself
CREDENTIAL = r"^[\x21-\x7e]{1,256}$"
Credential = Annotated[str, bounded_text(pattern=CREDENTIAL)]


@record
class NewLogin(Record):
    """Either a token or a code."""

    token: Credential | None = None
    code: Credential | None = None


@record
class Login(Record):
    """A session. `user` is empty where it is that of a token of nobody, `token_id` where it is not
    that of a token. It ends at `expires_at`, or at `idle_at` if it is not used until then.
    """

    id: str
    principal: str
    user: str
    token_id: str
    created_at: datetime
    used_at: datetime
    idle_at: datetime
    expires_at: datetime


@record
class Identity(Record):
    """Who the caller is. `role` None: a token that belongs to nobody. `session` None: not a
    session.
    """

    principal: str
    user: str
    role: Role | None
    scopes: tuple[str, ...]
    session: Login | None


@record
class SignedIn(Record):
    """A session that was made. The cookie is in the header; `key` is only here. Every request needs
    both.
    """

    key: str
    identity: Identity


@record
class Logins(Record):
    """Sessions, oldest first."""

    items: tuple[Login, ...]


class LoginEndpoints(Protocol):
    """What the API serves for sessions of people."""

    async def sign_in(self, body: NewLogin) -> SignedIn: ...

    async def whoami(self) -> Identity: ...

    async def sign_out(self) -> None: ...

    async def make_own_code(self) -> LoginCode: ...

    async def list_logins(self) -> Logins: ...

    async def end(self, id: Id) -> None: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (NewLogin, Login, Identity, SignedIn, Logins)
}
