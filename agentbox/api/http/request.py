"""One request, checked against its route."""

import re
from collections.abc import Mapping
from typing import Any

from agentbox.api.auth.authentication import Caller
from agentbox.api.http.query import INTEGER
from agentbox.contracts.routes.route import Route
from agentbox.core.frozen import frozen
from agentbox.core.http.body import BodyReader
from agentbox.core.http.problems import invalid

IDEMPOTENCY_KEY = r"^[\x20-\x7e]{0,128}$"
_KEY = re.compile(IDEMPOTENCY_KEY)


@frozen
class ApiRequest:
    """One request. `headers` has the last value of each name; `body` is parsed JSON, None where the
    route has none or reads raw bytes through `incoming`. `peer` is the address of the connection's
    other end.
    """

    route: Route
    method: str
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    incoming: BodyReader
    caller: Caller
    peer: str = ""

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

    def last_event_id(self) -> int | None:
        """`Last-Event-ID`, the position from which a stream resumes; None without one."""
        text = self.headers.get("last-event-id")
        if text is not None and (not INTEGER.fullmatch(text) or int(text) < 0):
            raise invalid("Last-Event-ID", "must be the id of an event of this stream")
        return None if text is None else int(text)
