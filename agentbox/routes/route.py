"""What one row of the route table says, and how a client makes a URL of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlencode

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
_PARAMETER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, kw_only=True)
class Route:
    """One HTTP route.

    `scope`: every name must be held; empty = public. `handler` is `<module>.<function>` below the API's endpoints;
    `request` and `response` name records ("" = no body), so that the server and each client can share this table.
    `query` names are all that the query string may hold. `body_limit` is in bytes: 0 = a body is refused,
    None = `api.max_body`. A `stream` answers server-sent events.
    """

    name: str
    method: Method
    path: str
    scope: tuple[str, ...]
    handler: str
    summary: str
    request: str = ""
    response: str = ""
    statuses: tuple[int, ...] = (200,)
    body_limit: int | None = 0
    query: tuple[str, ...] = ()
    stream: bool = False
    listener: Literal["api", "metrics"] = "api"

    @property
    def public(self) -> bool:
        return not self.scope

    @property
    def probe(self) -> bool:
        """True for the routes that a prober calls without credentials (box.md 7)."""
        return self.handler.startswith("probes.")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in braces of the path."""
        return tuple(_PARAMETER.findall(self.path))

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches exactly the paths of this row; a parameter is one segment that is not empty."""
        parts = _PARAMETER.split(self.path)
        text = "".join(re.escape(part) if i % 2 == 0 else f"(?P<{part}>[^/]+)" for i, part in enumerate(parts))
        return re.compile(f"^{text}$")

    def url(self, parameters: Mapping[str, str] | None = None, query: Mapping[str, object] | None = None) -> str:
        """Path and query string. Raises KeyError for a parameter left out, ValueError for an unknown query name."""
        given = parameters or {}
        path = _PARAMETER.sub(lambda match: quote(str(given[match[1]]), safe=""), self.path)
        wanted = {name: value for name, value in (query or {}).items() if value is not None}
        if unknown := sorted(set(wanted) - set(self.query)):
            raise ValueError(f"route {self.name} takes no query name {unknown[0]!r}")
        return f"{path}?{urlencode(wanted, doseq=True)}" if wanted else path
