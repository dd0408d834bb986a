"""Named tokens of the API."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Protocol

from agentbox.contracts.arguments import Id
from agentbox.contracts.scopes import GRANTABLE as GRANTABLE
from agentbox.core.records.bounds import bounded_text, item_count, number_range, schema_keywords
from agentbox.core.records.wire import Record, record

MAX_TTL = 10 * 366 * 86400  # seconds
MAX_RATE = 100_000  # requests a second
NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"
BOUND = r"^[\x21-\x7e]{0,256}$"
Bound = Annotated[str, bounded_text(pattern=BOUND)]
Granted = Annotated[str, schema_keywords(enum=sorted(GRANTABLE))]


@record
class NewToken(Record):
    """A token to create. `ttl_s` None: it does not expire. An empty binding does not restrict.
    `rate` is in requests per second, 0 = unlimited. `origin_box` is the box whose journal it may
    deliver; empty: none. `user`: whose token it is, ends with that user and has at most the scopes
    of the user's role; empty: nobody's.
    """

    name: Annotated[str, bounded_text(pattern=NAME)]
    scopes: Annotated[tuple[Granted, ...], item_count(minimum=1)]
    ttl_s: Annotated[int | None, number_range(1, MAX_TTL)] = None
    pod_prefix: Bound = ""
    memory_prefix: Bound = ""
    event_source: Bound = ""
    rate: Annotated[int, number_range(0, MAX_RATE)] = 0
    origin_box: Bound = ""
    user: Bound = ""


@record
class Token(Record):
    """The metadata of a token, without its value. `disabled`: it came back with a restored state,
    where it may have been revoked since, and is refused.
    """

    id: str
    name: str
    scopes: tuple[str, ...]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    pod_prefix: str
    memory_prefix: str
    event_source: str
    rate: int
    origin_box: str
    disabled: bool
    user: str


@record
class CreatedToken(Token):
    """A new token. `value` is returned only here."""

    value: str


@record
class Tokens(Record):
    """All tokens, oldest first."""

    items: tuple[Token, ...]


class TokenEndpoints(Protocol):
    """What the API serves for tokens."""

    async def list_tokens(self) -> Tokens: ...

    async def create(self, token: NewToken) -> CreatedToken: ...

    async def enable(self, id: Id) -> Token: ...

    async def revoke(self, id: Id) -> None: ...

    async def revoke_self(self) -> None: ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (NewToken, Token, CreatedToken, Tokens)
}
