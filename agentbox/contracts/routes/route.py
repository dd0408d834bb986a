"""A row of the route table."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from agentbox.contracts.routes.operation import RequestMember
from agentbox.contracts.routes.request_line import RequestLine, path_parameters, rest_parameter
from agentbox.core.frozen import frozen

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


@frozen
class Route:
    """One HTTP route. `scope`: all are required; empty = public. `handler` is `<group>.<operation>`
    of the API's endpoints; `request` and `response` are names of records ("" = no body), shared by
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
    members: tuple[RequestMember, ...] = field(default=(), repr=False)
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
        return rest_parameter(self.path)

    @property
    def template(self) -> str:
        """The path in OpenAPI syntax."""
        return self.path.replace("*}", "}")

    def url(
        self, parameters: Mapping[str, str] | None = None, query: Mapping[str, object] | None = None
    ) -> str:
        """As `RequestLine.url`."""
        line = RequestLine(self.name, self.method, self.path, self.query, self.stream)
        return line.url(parameters, query)
