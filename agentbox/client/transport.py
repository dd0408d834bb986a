"""Builds requests from the table of operations and parses responses; shared by both clients."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from agentbox.client.errors import ApiError
from agentbox.client.request_lines import REQUEST_LINES
from agentbox.core.errors import AgentboxError, ExitCode

MAX_URL = 12 << 10  # characters, of the 16 KiB that a box accepts as request head
_TOKEN = re.compile(r"[!-~]+")
ACCEPT_STREAM = "text/event-stream"


class HttpResponse(Protocol):
    """A response of either client's transport. Functions that use the body require it to be
    read."""

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
    """A request. `url` is relative to the base; `body` is sent as JSON, `content` unchanged."""

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
    """Builds the request of an operation; `method` may be HEAD for a GET.

    Raises KeyError for an unknown operation, ValueError for an unknown query parameter, an
    ambiguous path, or a URL longer than a box accepts.
    """
    route = REQUEST_LINES[name]
    accept = ACCEPT_STREAM if route.stream else "application/json"
    url = route.url(parameters, query)
    if len(url) > MAX_URL:
        raise ValueError(
            f"the path and query of {name} have {len(url)} characters: the maximum is {MAX_URL}"
        )
    return Call(method or route.method, url, {"Accept": accept, **(headers or {})}, body, content)


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries whose value is not None."""
    return {name: value for name, value in values.items() if value is not None}


def base_headers(token: str) -> dict[str, str]:
    """Headers of every request; none for an empty token. Raises AgentboxError (exit 2), without
    showing the token, if it is not a valid header value."""
    if token and not _TOKEN.fullmatch(token):
        raise AgentboxError(
            "cannot send the token: it contains blanks, control or non-ASCII characters",
            "Set it again, as printed by `agentbox token create` or the box.",
            exit_code=ExitCode.USAGE,
        )
    return {"Authorization": f"Bearer {token}"} if token else {}


def parse_data(response: HttpResponse, *, accepted: tuple[int, ...] = ()) -> Any:
    """The JSON of a success (None for 204), or of a status in `accepted`. Raises ApiError
    otherwise."""
    check_response(response, accepted)
    return response.json() if response.content else None


def check_response(response: A, accepted: tuple[int, ...]) -> A:
    """Returns a success or a status in `accepted`. Raises ApiError otherwise."""
    if response.is_success or response.status_code in accepted:
        return response
    raise parse_error(response)


def parse_error(response: HttpResponse) -> ApiError:
    """Converts an error response, whose body must have been read."""
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
