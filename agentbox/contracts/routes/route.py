"""A row of the route table, and the URLs that clients build from it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote, urlencode

from agentbox.contracts.operation import Member

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_PARAMETER = re.compile(r"\{([a-z_]+)(\*?)\}")


@dataclass(frozen=True, kw_only=True)
class Route:
    """One HTTP route. `scope`: all are required; empty = public. `handler` is `<module>.<function>`
    in the API's endpoints; `request` and `response` are names of records ("" = no body), shared by
    server and clients. `query` lists the allowed query parameters. `body_limit` is in bytes: 0 = no
    body, None = `api.max_body`. A `stream` returns server-sent events, an `error` event is a
    problem; a `socket` is a GET that becomes a WebSocket, errors before that are problems. With
    `media` = `any` bodies are bytes of any type: the handler reads the body in chunks and evaluates
    Accept itself. `headers` are the relevant request headers. `{name*}` at the end of a path
    matches the rest, including slashes. `members` are the parameters and members of the body with
    their types; `agents`: may be called for an agent.
    """

    name: str
    method: Method
    path: str
    scope: tuple[str, ...]
    handler: str
    summary: str
    request: str = ""
    response: str = ""
    last: str = ""  # the record that ends a stream, if different
    statuses: tuple[int, ...] = (200,)
    body_limit: int | None = 0
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    stream: bool = False
    socket: bool = False
    media: Literal["json", "any"] = "json"
    listener: Literal["api", "metrics"] = "api"
    members: tuple[Member, ...] = field(default=(), repr=False)
    agents: bool = False

    @property
    def is_public(self) -> bool:
        return not self.scope

    @property
    def is_probe(self) -> bool:
        """True for routes that probers call without credentials."""
        return self.handler.startswith("probes.")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameter names in the path."""
        return path_parameters(self.path)

    @property
    def rest_parameter(self) -> str:
        """The name of the parameter that matches the rest of the path; "" if there is none."""
        return next((name for name, star in _PARAMETER.findall(self.path) if star), "")

    @property
    def template(self) -> str:
        """The path in OpenAPI syntax."""
        return self.path.replace("*}", "}")

    def url(
        self, parameters: Mapping[str, str] | None = None, query: Mapping[str, object] | None = None
    ) -> str:
        """Path and query string. Raises KeyError for a missing parameter, ValueError for an unknown
        query parameter, or for a parameter that clients and proxies would normalise (an empty
        segment, `.` or `..`), so that the request would reach another route.
        """
        values = parameters or {}
        for name in self.parameters:
            if name != self.rest_parameter and values[name] in ("", ".", ".."):
                raise ValueError(f"{name} is {values[name]!r}, which is not a path segment")
        if self.rest_parameter and not _is_stable(values[self.rest_parameter]):
            raise ValueError(
                f"{values[self.rest_parameter]!r} has an empty segment, or one that is . or .."
            )
        path = _PARAMETER.sub(
            lambda match: quote(str(values[match[1]]), safe="/" if match[2] else ""), self.path
        )
        present = {name: value for name, value in (query or {}).items() if value is not None}
        if unknown := sorted(set(present) - set(self.query)):
            raise ValueError(f"route {self.name} has no query parameter {unknown[0]!r}")
        return f"{path}?{urlencode(present, doseq=True)}" if present else path


def path_parameters(path: str) -> tuple[str, ...]:
    """The parameter names in a path."""
    return tuple(name for name, _ in _PARAMETER.findall(path))


def _is_stable(path: str) -> bool:
    return path == "" or not any(
        segment in ("", ".", "..") for segment in path.removesuffix("/").split("/")
    )
