"""Reads request bodies up to the limit of the route."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from agentbox.api.endpoints.cloudevents import MEDIA_TYPES as CLOUD_TYPES
from agentbox.contracts.routes.route import Route
from agentbox.core.http.headers import body_too_large, check_content_type, has_body
from agentbox.core.http.problems import invalid
from agentbox.core.records.json_input import InvalidJson
from agentbox.core.records.json_input import read_json as parse_json

JSON_TYPES = ("application/json",)
Receive = Callable[[], Awaitable[Mapping[str, Any]]]


def reject_body(headers: Mapping[str, str]) -> None:
    """Raises ValueTooLarge (413) if a body is announced on a route that accepts none."""
    if has_body(headers):
        length = headers.get("content-length", "1")
        raise body_too_large(int(length) if length.isdecimal() else 1, 0)


async def read_json(
    route: Route, headers: Mapping[str, str], receive: Receive, max_body: int
) -> Any:
    """The parsed JSON body. Raises ValueTooLarge, UnsupportedMediaType, or ValidationError for
    invalid JSON.
    """
    cap = max_body if route.body_limit is None else route.body_limit
    check_content_type(
        headers, JSON_TYPES + CLOUD_TYPES if route.name == "append_events" else JSON_TYPES
    )
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length) > cap:
        raise body_too_large(int(length), cap)
    data = await _read(receive, cap)
    try:
        return parse_json(data)
    except InvalidJson as error:
        raise invalid("", f"the body is not valid JSON: {error}") from error


async def _read(receive: Receive, cap: int) -> bytes:
    data = bytearray()
    async for chunk in _chunks(receive):
        data += chunk
        if len(data) > cap:
            raise body_too_large(len(data), cap)
    return bytes(data)


async def _chunks(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise invalid("", "the connection closed before the end of the body")
        if chunk := message.get("body", b""):
            yield chunk
        if not message.get("more_body", False):
            return


class BodyReader:
    """The body of one request, for handlers that read bytes."""

    def __init__(self, receive: Receive, headers: Mapping[str, str]) -> None:
        self.receive = receive
        self.unread = has_body(headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yields chunks as they arrive. Raises ValidationError if the connection closes before the
        end.
        """
        async for chunk in _chunks(self.receive):
            yield chunk
        self.unread = False

    async def read_all(self, cap: int) -> bytes:
        """The complete body. Raises ValueTooLarge over `cap` bytes."""
        data = await _read(self.receive, cap)
        self.unread = False
        return data
