"""A WebSocket on an agent's pipes: binary messages both ways, an empty one closes stdin, a text
message is a problem.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from agentbox.api.http.reply import Reply, SocketReply
from agentbox.api.http.sending import encode_body, reply_headers
from agentbox.contracts.orchestrator import Attachment
from agentbox.core.slot_errors import AdapterError

NORMAL, GOING_AWAY, WRONG_TYPE, BUG = (
    1000,
    1012,
    1003,
    1011,
)  # RFC 6455 7.4.1; 1012 "service restart" of its registry
PROBLEM_BASE = 4000  # plus the HTTP status of the problem sent before: 4410
_FLUSH_SECONDS = 5.0  # to write the input of a client that disconnected immediately
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
_log = structlog.get_logger()


async def refuse_socket(reply: Reply, receive: Receive, send: Send, request_id: str) -> None:
    """Sends a problem instead of the upgrade."""
    await receive()  # websocket.connect
    body = encode_body(reply.body)
    headers = [
        *reply.headers,
        ("content-type", reply.media_type),
        ("content-length", str(len(body))),
        ("connection", "close"),
    ]
    encoded = reply_headers(headers, request_id)
    await send(
        {"type": "websocket.http.response.start", "status": reply.status, "headers": encoded}
    )
    await send({"type": "websocket.http.response.body", "body": body})


async def serve_socket(
    socket: SocketReply, receive: Receive, send: Send, closing: asyncio.Event, request_id: str
) -> None:
    """Runs until the agent's output ends, the client disconnects, or the box drains. Detaches at
    the end.
    """
    attached = socket.attachment
    try:
        await receive()
        await send(
            {"type": "websocket.accept", "headers": [(b"x-request-id", request_id.encode())]}
        )
        work = [
            asyncio.ensure_future(_client_to_agent(attached, receive, send, request_id)),
            asyncio.ensure_future(_agent_to_client(attached, send, request_id)),
            asyncio.ensure_future(_wait_closing(closing)),
        ]
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            if work[0] not in done and any(isinstance(task.exception(), OSError) for task in done):
                await asyncio.wait(
                    work[:1], timeout=_FLUSH_SECONDS
                )  # the client disconnected: its input is still written
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
        code = next((task.result() for task in done if task.exception() is None), BUG)
        for error in filter(None, (task.exception() for task in done)):
            if not isinstance(error, OSError):
                _log.error("attachment failed", request_id=request_id, exc_info=error)
        if code:
            await send({"type": "websocket.close", "code": code})
    except OSError as error:
        _log.info(
            "attachment ended: client disconnected",
            request_id=request_id,
            reason=type(error).__name__,
        )
    finally:
        await attached.aclose()


async def _client_to_agent(
    attached: Attachment, receive: Receive, send: Send, request_id: str
) -> int:
    """Writes the client's messages to stdin. Rejected input is reported, and ends nothing: output
    may still come.
    """
    while (message := await receive())["type"] != "websocket.disconnect":
        data = message.get("bytes")
        if data is None:
            return WRONG_TYPE
        try:
            await (attached.send(data) if data else attached.close_stdin())
        except AdapterError as error:
            await _send_problem(error, send, request_id)
    return 0


async def _agent_to_client(attached: Attachment, send: Send, request_id: str) -> int:
    try:
        async for chunk in attached:
            await send({"type": "websocket.send", "bytes": chunk})
    except AdapterError as error:
        await _send_problem(error, send, request_id)
        return PROBLEM_BASE + error.status
    return NORMAL


async def _wait_closing(closing: asyncio.Event) -> int:
    await closing.wait()
    return GOING_AWAY


async def _send_problem(error: AdapterError, send: Send, request_id: str) -> None:
    await send({"type": "websocket.send", "text": json.dumps(error.to_problem(request_id))})
