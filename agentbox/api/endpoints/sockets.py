"""A WebSocket on an agent's pipes: binary messages both ways, an empty one closes stdin, a text message is a problem."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from agentbox.api.http.reply import Reply, Socket
from agentbox.api.http.sending import bytes_of, head_of
from agentbox.contracts.orchestrator import Attachment
from agentbox.core.slot_errors import AdapterError

NORMAL, GOING_AWAY, WRONG_TYPE, BUG = 1000, 1012, 1003, 1011  # RFC 6455 7.4.1; 1012 "service restart" of its registry
TYPED = 4000  # and the HTTP status of the problem sent before: 4410
_LAST_SECONDS = 5.0  # to write what a client sent that left at once
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
_log = structlog.get_logger()


async def refuse_socket(reply: Reply, receive: Receive, send: Send, identity: str) -> None:
    """A problem in place of the upgrade."""
    await receive()  # websocket.connect
    body = bytes_of(reply.body)
    own = [
        *reply.headers,
        ("content-type", reply.media_type),
        ("content-length", str(len(body))),
        ("connection", "close"),
    ]
    head = head_of(own, identity)
    await send({"type": "websocket.http.response.start", "status": reply.status, "headers": head})
    await send({"type": "websocket.http.response.body", "body": body})


async def serve_socket(socket: Socket, receive: Receive, send: Send, closing: asyncio.Event, identity: str) -> None:
    """Until the agent's output ends, the client leaves, or the box drains. What was attached is let go."""
    attached = socket.attached
    try:
        await receive()
        await send({"type": "websocket.accept", "headers": [(b"x-request-id", identity.encode())]})
        work = [
            asyncio.ensure_future(_inward(attached, receive, send, identity)),
            asyncio.ensure_future(_outward(attached, send, identity)),
            asyncio.ensure_future(_until(closing)),
        ]
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            if work[0] not in done and any(isinstance(task.exception(), OSError) for task in done):
                await asyncio.wait(work[:1], timeout=_LAST_SECONDS)  # the client left: what it sent before is written
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
        code = next((task.result() for task in done if task.exception() is None), BUG)
        for error in filter(None, (task.exception() for task in done)):
            if not isinstance(error, OSError):
                _log.error("attachment failed", request_id=identity, exc_info=error)
        if code:
            await send({"type": "websocket.close", "code": code})
    except OSError as error:
        _log.info("attachment ended: its client is gone", request_id=identity, reason=type(error).__name__)
    finally:
        await attached.aclose()


async def _inward(attached: Attachment, receive: Receive, send: Send, identity: str) -> int:
    """What the client sends goes to stdin. Input that is refused is told, and ends nothing: output may still come."""
    while (message := await receive())["type"] != "websocket.disconnect":
        data = message.get("bytes")
        if data is None:
            return WRONG_TYPE
        try:
            await (attached.send(data) if data else attached.close_stdin())
        except AdapterError as error:
            await _tell(error, send, identity)
    return 0


async def _outward(attached: Attachment, send: Send, identity: str) -> int:
    try:
        async for chunk in attached:
            await send({"type": "websocket.send", "bytes": chunk})
    except AdapterError as error:
        await _tell(error, send, identity)
        return TYPED + error.status
    return NORMAL


async def _until(closing: asyncio.Event) -> int:
    await closing.wait()
    return GOING_AWAY


async def _tell(error: AdapterError, send: Send, identity: str) -> None:
    await send({"type": "websocket.send", "text": json.dumps(error.to_problem(identity))})
