"""Sends a response: complete, or in chunks."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from agentbox.api.http.reply import JSON, Reply, StreamedReply
from agentbox.core.http.headers import SECURITY_HEADERS
from agentbox.core.http.sse import STALL_SECONDS
from agentbox.core.records.wire import to_json

Send = Callable[[Mapping[str, Any]], Awaitable[None]]
BODILESS = (204, 304)  # responses without a body and its headers (RFC 9110 15.3.5, 15.4.5)
_log = structlog.get_logger()


async def send_reply(reply: Reply, send: Send, request_id: str, *, close: bool) -> None:
    """Sends a complete response; `close` closes the connection afterwards."""
    body = encode_body(reply.body)
    headers = list(reply.headers)
    if reply.status not in BODILESS:
        headers.append(("content-length", str(len(body) if reply.length is None else reply.length)))
        if reply.body is not None or reply.length is not None:
            headers.append(("content-type", reply.media_type))
    if close or (reply.status in (413, 503) and reply.media_type != JSON):
        headers.append(("connection", "close"))  # a rejected body is not read to its end
    await send(
        {
            "type": "http.response.start",
            "status": reply.status,
            "headers": reply_headers(headers, request_id),
        }
    )
    await send({"type": "http.response.body", "body": body})


async def send_streamed(
    reply: StreamedReply, send: Send, request_id: str, abort: Callable[[], None]
) -> None:
    """Sends a body of known length. An incomplete body aborts the connection, so that the client
    notices.
    """
    headers = [
        *reply.headers,
        ("content-type", reply.media_type),
        ("content-length", str(reply.length)),
    ]
    await send(
        {
            "type": "http.response.start",
            "status": reply.status,
            "headers": reply_headers(headers, request_id),
        }
    )
    try:
        async for chunk in reply.chunks:
            async with asyncio.timeout(STALL_SECONDS):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except BaseException as error:
        abort()
        if not isinstance(error, Exception):
            raise
        _log.warning(
            "response body not sent completely", request_id=request_id, reason=type(error).__name__
        )


def reply_headers(headers: list[tuple[str, str]], request_id: str) -> list[tuple[bytes, bytes]]:
    """The headers of every response; its own replace the defaults."""
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    names = {name for name, _ in encoded}
    return [
        *((name, value) for name, value in SECURITY_HEADERS if name not in names),
        (b"x-request-id", request_id.encode()),
        *encoded,
    ]


def encode_body(body: Any) -> bytes:
    """Encodes a body: compact JSON, or bytes unchanged."""
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body
    return to_json(body).encode()
