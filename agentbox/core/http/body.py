"""Reads request bodies up to a limit."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope

from agentbox.core.http.headers import body_too_large, check_content_type, has_body
from agentbox.core.http.problems import invalid
from agentbox.core.records.json_input import InvalidJson
from agentbox.core.records.json_input import read_json as parse_json


def reject_body(headers: Mapping[str, str]) -> None:
    """Raises ValueTooLarge (413) if a body is announced on a route that accepts none."""
    if has_body(headers):
        length = headers.get("content-length", "1")
        raise body_too_large(int(length) if length.isdecimal() else 1, 0)


class BodyReader:
    """The body of one request."""

    def __init__(self, scope: Scope, receive: Receive, headers: Mapping[str, str]) -> None:
        self._scope, self._receive, self._headers = scope, receive, headers
        self.unread = has_body(headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yields chunks as they arrive. Raises ValidationError if the connection closes before the
        end.
        """
        try:
            async for chunk in Request(self._scope, self._receive).stream():
                if chunk:
                    yield chunk
        except ClientDisconnect:
            raise invalid("", "the connection closed before the end of the body") from None
        self.unread = False

    async def read_all(self, cap: int) -> bytes:
        """The complete body. Raises ValueTooLarge over `cap` bytes."""
        data = bytearray()
        async for chunk in self.chunks():
            data += chunk
            if len(data) > cap:
                raise body_too_large(len(data), cap)
        return bytes(data)

    async def read_json(self, cap: int, accepted: tuple[str, ...]) -> Any:
        """The parsed JSON body. Raises ValueTooLarge over `cap` bytes, UnsupportedMediaType, or
        ValidationError for invalid JSON.
        """
        check_content_type(self._headers, accepted)
        length = self._headers.get("content-length", "0")
        if length.isdecimal() and int(length) > cap:
            raise body_too_large(int(length), cap)
        data = await self.read_all(cap)
        try:
            return parse_json(data)
        except InvalidJson as error:
            raise invalid("", f"the body is not valid JSON: {error}") from error
