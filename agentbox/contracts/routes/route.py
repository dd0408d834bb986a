"""What one row of the route table says, and how a client makes a URL of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlencode

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_PARAMETER = re.compile(r"\{([a-z_]+)(\*?)\}")


@dataclass(frozen=True, kw_only=True)
class Route:
    """One HTTP route.

    `scope`: every name must be held; empty = public. `handler` is `<module>.<function>` below the API's endpoints;
    `request` and `response` name records ("" = no body), so that the server and each client can share this table.
    `query` names are all that the query string may hold. `body_limit` is in bytes: 0 = a body is refused,
    None = `api.max_body`. A `stream` answers server-sent events, of which an `error` is a problem; a `socket` is a GET that
    becomes a WebSocket, and is refused with a problem before that. Where `media` is `any`, bodies are bytes of any type:
    the handler reads the body piece by piece, and looks at Accept itself. `headers` are those that mean something here.
    `{name*}` at the end of a path is the rest of it, slashes and all.
    """

    name: str
    method: Method
    path: str
    scope: tuple[str, ...]
    handler: str
    summary: str
    request: str = ""
    response: str = ""
    last: str = ""  # the record that ends a stream, where it is another one
    statuses: tuple[int, ...] = (200,)
    body_limit: int | None = 0
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    stream: bool = False
    socket: bool = False
    media: Literal["json", "any"] = "json"
    listener: Literal["api", "metrics"] = "api"

    @property
    def is_public(self) -> bool:
        return not self.scope

    @property
    def is_probe(self) -> bool:
        """True for the routes that a prober calls without credentials."""
        return self.handler.startswith("probes.")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in braces of the path."""
        return tuple(name for name, _ in _PARAMETER.findall(self.path))

    @property
    def rest_parameter(self) -> str:
        """The name of the parameter that is the rest of the path; "" where there is none."""
        return next((name for name, star in _PARAMETER.findall(self.path) if star), "")

    @property
    def template(self) -> str:
        """The path as OpenAPI writes it."""
        return self.path.replace("*}", "}")

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches exactly the paths of this row; a parameter is one segment that is not empty, unless it is the rest."""
        position, text = 0, ""
        for match in _PARAMETER.finditer(self.path):
            group = ".*" if match[2] else "[^/]+"
            text += f"{re.escape(self.path[position : match.start()])}(?P<{match[1]}>{group})"
            position = match.end()
        return re.compile(f"^{text}{re.escape(self.path[position:])}$")

    def url(
        self, parameters: Mapping[str, str] | None = None, query: Mapping[str, object] | None = None
    ) -> str:
        """Path and query string. Raises KeyError for a parameter left out, ValueError for an unknown query name, or for a
        parameter that clients and proxies would change on its way (an empty segment, `.` or `..`): escaping does not hold
        them, and the request would meet another route."""
        values = parameters or {}
        for name in self.parameters:
            if name != self.rest_parameter and values[name] in ("", ".", ".."):
                raise ValueError(f"{name} is {values[name]!r}, which is no segment of a path")
        if self.rest_parameter and not _is_stable(values[self.rest_parameter]):
            raise ValueError(
                f"{values[self.rest_parameter]!r} has an empty segment, or one that is . or .."
            )
        path = _PARAMETER.sub(
            lambda match: quote(str(values[match[1]]), safe="/" if match[2] else ""), self.path
        )
        present = {name: value for name, value in (query or {}).items() if value is not None}
        if unknown := sorted(set(present) - set(self.query)):
            raise ValueError(f"route {self.name} takes no query name {unknown[0]!r}")
        return f"{path}?{urlencode(present, doseq=True)}" if present else path


def _is_stable(path: str) -> bool:
    return path == "" or not any(
        segment in ("", ".", "..") for segment in path.removesuffix("/").split("/")
    )
