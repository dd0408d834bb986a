"""Builds requests from the table of operations and parses responses; shared by both clients.

The records' module is imported on use: a command that prints plain JSON does without.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from agentbox.client.errors import ApiError
from agentbox.client.request_lines import REQUEST_LINES
from agentbox.contracts.routes.request_line import InvalidUrl
from agentbox.core import clock
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.http.sse_parser import SseEvent

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
T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """A request of the operation `name`. `url` is relative to the base; `body` is sent as JSON,
    `content` unchanged."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Any = None
    content: Any = None
    name: str = ""


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
    """Builds the request of an operation; `method` may be HEAD for a GET. Records in `body` are
    sent in their wire form.

    Raises KeyError for an unknown operation, ValueError for an unknown query parameter, an
    ambiguous path, or a URL longer than a box accepts.
    """
    route = REQUEST_LINES[name]
    accept = ACCEPT_STREAM if route.stream else "application/json"
    url = route.url(parameters, {key: _query_text(item) for key, item in (query or {}).items()})
    if len(url) > MAX_URL:
        raise InvalidUrl(
            f"the path and query of {name} have {len(url)} characters: the maximum is {MAX_URL}"
        )
    sent = None if body is None else wire_form(body)
    all_headers = {"Accept": accept, **(headers or {})}
    return Call(method or route.method, url, all_headers, sent, content, name)


def _query_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return json.dumps(dict(value))
    if isinstance(value, datetime):
        return clock.to_wire(value)
    return (",".join(value) or None) if isinstance(value, (list, tuple)) else value


def wire_form(value: Any) -> Any:
    """The wire form of a record, or of JSON data that has records in it."""
    from agentbox.core.records.wire import to_wire

    return to_wire(value)


def decode(kind: type[T], response: HttpResponse) -> T:
    """Decodes a record; ignores unknown members, since the box may be newer. Raises
    ValidationError."""
    return _from_json(kind, response.json())


def decode_optional(kind: type[T], response: HttpResponse) -> T | None:
    """None for an empty response and for an error."""
    return decode(kind, response) if response.is_success and response.content else None


def decode_event(kind: type[T], event: SseEvent) -> T:
    """Like `decode`."""
    return _from_json(kind, json.loads(event.data))


def _from_json(kind: type[T], data: Any) -> T:
    from agentbox.core.records.wire import from_wire

    return from_wire(kind, data, ignore_unknown=True)


def idempotency_header(request_id: str) -> dict[str, str]:
    """None for an empty id."""
    return {"Idempotency-Key": request_id} if request_id else {}


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


def parse_data(response: HttpResponse) -> Any:
    """The JSON of a response, None for 204."""
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
