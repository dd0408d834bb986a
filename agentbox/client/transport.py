"""From a row of the route table to a request, and from an answer to data or an error: what both clients share."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from agentbox.client.errors import ApiError
from agentbox.contracts.registry import BY_NAME
from agentbox.core.errors import AgentboxError, ExitCode

MAX_URL = 12 << 10  # characters, of the 16 KiB that a box reads of a head
_TOKEN = re.compile(r"[!-~]+")
ACCEPT_STREAM = "text/event-stream"


class HttpResponse(Protocol):
    """A response of either client's transport, its body read where a function says so."""

    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def content(self) -> bytes: ...

    @property
    def is_success(self) -> bool: ...

    def json(self) -> Any: ...


A = TypeVar("A", bound=HttpResponse)


@dataclass(frozen=True)
class Call:
    """A request, ready to send. `url` is relative to the base; `body` is sent as JSON, `content` as it is."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Any = None
    content: Any = None


def build_call(
    name: str,
    parameters: Mapping[str, str] | None = None,
    *,
    query: Mapping[str, object] | None = None,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    content: Any = None,
    method: str = "",
) -> Call:
    """The request for a route by name; `method` is HEAD where no body of a GET is wanted.

    Raises KeyError for an unknown route, ValueError for an unknown query name, a path that could change on its way, and for both
    together where they are longer than a box reads.
    """
    route = BY_NAME[name]
    accept = ACCEPT_STREAM if route.stream else "application/json"
    url = route.url(parameters, query)
    if len(url) > MAX_URL:
        raise ValueError(
            f"the path and query of {name} have {len(url)} characters: the most is {MAX_URL}"
        )
    return Call(method or route.method, url, {"Accept": accept, **(headers or {})}, body, content)


def base_headers(token: str) -> dict[str, str]:
    """Headers of every request. An empty token sends no credential. Raises AgentboxError (exit 2), without the token, for one
    that no header holds."""
    if token and not _TOKEN.fullmatch(token):
        raise AgentboxError(
            "cannot send the token: it has blanks, control characters or characters outside of ASCII",
            "Set it again, as `agentbox token create` or the box printed it.",
            exit_code=ExitCode.USAGE,
        )
    return {"Authorization": f"Bearer {token}"} if token else {}


def parse_data(response: HttpResponse, *, accepted: tuple[int, ...] = ()) -> Any:
    """The JSON of a success (None for 204), or of a status in `accepted`. Raises ApiError for everything else."""
    check_response(response, accepted)
    return response.json() if response.content else None


def check_response(response: A, accepted: tuple[int, ...]) -> A:
    """The answer, a success or a status in `accepted`. Raises ApiError for everything else."""
    if response.is_success or response.status_code in accepted:
        return response
    raise parse_error(response)


def parse_error(response: HttpResponse) -> ApiError:
    """The error that an answer stands for; its body must have been read."""
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    document = problem if isinstance(problem, dict) else {}
    wait = response.headers.get("retry-after", "")
    return ApiError(
        response.status_code,
        document,
        request_id=response.headers.get("x-request-id", ""),
        retry_after=float(wait) if wait.isdecimal() else None,
    )
