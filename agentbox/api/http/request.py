"""The input of an endpoint: one request, checked against its route."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from agentbox.api.auth.access import Caller
from agentbox.contracts.arguments import MAX_CURSOR
from agentbox.contracts.routes.route import Route
from agentbox.core.http.body import BodyReader
from agentbox.core.http.problems import invalid
from agentbox.core.records.wire import Record

if TYPE_CHECKING:
    from agentbox.api.services import Services

R = TypeVar("R", bound=Record)
IDEMPOTENCY_KEY = r"^[\x20-\x7e]{0,128}$"
_KEY = re.compile(IDEMPOTENCY_KEY)
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True, kw_only=True)
class ApiRequest:
    """One request. `headers` has the last value of each name; `body` is parsed JSON, None where the
    route has none or reads raw bytes through `incoming`.
    """

    services: "Services"
    route: Route
    method: str
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    incoming: BodyReader
    caller: Caller

    def record(self, kind: type[R]) -> R:
        """The body as a record. Raises ValidationError with the pointer of the invalid part."""
        return kind.from_wire(self.body)

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        """An integer of the query string. Raises ValidationError outside low..high."""
        text = self.query.get(name)
        if text is None:
            return default
        if not _INTEGER.fullmatch(text) or not low <= int(text) <= high:
            raise invalid(f"?{name}", f"must be an integer from {low} to {high}")
        return int(text)

    def number(self, name: str, low: float, high: float) -> float | None:
        """As `integer`, for seconds; None when absent."""
        text = self.query.get(name)
        if text is None:
            return None
        if not _NUMBER.fullmatch(text) or not low <= float(text) <= high:
            raise invalid(f"?{name}", f"must be a number from {low:g} to {high:g}")
        return float(text)

    def boolean(self, name: str, default: bool) -> bool:
        """`true` or `false` of the query string."""
        text = self.query.get(name, str(default).lower())
        if text not in ("true", "false"):
            raise invalid(f"?{name}", "must be true or false")
        return text == "true"

    def idempotency_key(self) -> str:
        """`Idempotency-Key`, "" without one. Raises ValidationError when it is too long or not
        printable ASCII.
        """
        key = self.headers.get("idempotency-key", "")
        if not _KEY.fullmatch(key):
            raise invalid("Idempotency-Key", "must be at most 128 printable ASCII characters")
        return key

    def dedup_key(self, body_key: str | None) -> str | None:
        """The key of the body, else one from the header, the caller and the route: keys of
        different callers never collide.
        """
        key = self.idempotency_key()
        target = ":".join((self.route.name, *self.parameters.values()))
        return (
            f"idem:{self.caller.principal}:{target}:{key}" if body_key is None and key else body_key
        )

    def since(self, low: int) -> int | None:
        """The position from which a stream resumes: `Last-Event-ID`, else `?since=`; None without
        both.
        """
        last = self.headers.get("last-event-id")
        if last is None:
            return self.integer("since", low, low, MAX_CURSOR) if "since" in self.query else None
        if not _INTEGER.fullmatch(last) or int(last) < 0:
            raise invalid("Last-Event-ID", "must be the id of an event of this stream")
        return int(last)
