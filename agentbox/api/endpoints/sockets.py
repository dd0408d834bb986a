"""A WebSocket on an agent's pipes: binary messages both ways, an empty one closes stdin, a text
message is a problem.
"""

import asyncio

import structlog
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketDisconnected

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
_log = structlog.get_logger()
# What Starlette raises for a client that disconnected, besides the server's own OSError.
_DISCONNECTED = (OSError, WebSocketDisconnect, WebSocketDisconnected)


class AttachmentSocket:
    """The ASGI application of a WebSocket on one attachment. Runs until the agent's output ends,
    the client disconnects, or `closing` is set. Detaches at the end.
    """

    def __init__(self, attachment: Attachment, closing: asyncio.Event) -> None:
        self._attachment, self._closing = attachment, closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await serve_socket(WebSocket(scope, receive, send), self._attachment, self._closing)


async def serve_socket(socket: WebSocket, attached: Attachment, closing: asyncio.Event) -> None:
    request_id = socket.state.request_id
    try:
        await socket.accept()
        work = [
            asyncio.ensure_future(_client_to_agent(attached, socket)),
            asyncio.ensure_future(_agent_to_client(attached, socket)),
            asyncio.ensure_future(_wait_closing(closing)),
        ]
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            if work[0] not in done and any(map(_is_disconnect, done)):
                await asyncio.wait(
                    work[:1], timeout=_FLUSH_SECONDS
                )  # the client disconnected: its input is still written
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
        code = next((task.result() for task in done if task.exception() is None), BUG)
        for error in filter(None, (task.exception() for task in done)):
            if not isinstance(error, _DISCONNECTED):
                _log.error("attachment failed", request_id=request_id, exc_info=error)
        if code:
            await socket.close(code)
    except _DISCONNECTED as error:
        _log.info(
            "attachment ended: client disconnected",
            request_id=request_id,
            reason=type(error).__name__,
        )
    finally:
        await attached.aclose()


async def _client_to_agent(attached: Attachment, socket: WebSocket) -> int:
    """Writes the client's messages to stdin. Rejected input is reported, and ends nothing: output
    may still come.
    """
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        data = message.get("bytes")
        if data is None:
            return WRONG_TYPE
        try:
            await (attached.send(data) if data else attached.close_stdin())
        except AdapterError as error:
            await _send_problem(error, socket)
    return 0


async def _agent_to_client(attached: Attachment, socket: WebSocket) -> int:
    try:
        async for chunk in attached:
            await socket.send_bytes(chunk)
    except AdapterError as error:
        await _send_problem(error, socket)
        return PROBLEM_BASE + error.status
    return NORMAL


def _is_disconnect(task: "asyncio.Future[int]") -> bool:
    return isinstance(task.exception(), _DISCONNECTED)


async def _wait_closing(closing: asyncio.Event) -> int:
    await closing.wait()
    return GOING_AWAY


async def _send_problem(error: AdapterError, socket: WebSocket) -> None:
    await socket.send_json(error.to_problem(socket.state.request_id))
