"""A WebSocket that speaks the Agent Client Protocol with an editor: each text message is one
message of JSON-RPC, forwarded between the editor and session-host and not looked into.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import structlog
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketDisconnected

from agentbox.api.endpoints.sockets import (
    BUG,
    GOING_AWAY,
    NORMAL,
    PROBLEM_BASE,
    WRONG_TYPE,
)
from agentbox.contracts.session_host import EditorFrame, SessionHost
from agentbox.core.slot_errors import AdapterError, SlotUnavailable

CONNECTION, RECEIVED = "Acp-Connection-Id", "Agentbox-Received"
MAX_MESSAGE: Final = 16 << 20  # bytes of one message of an editor, as `acp.max_message`
_INVALID: Final = 1007  # RFC 6455 7.4.1: a message that is not a JSON object
_REASON_BYTES: Final = 120  # of a close frame: RFC 6455 5.5 allows 123
_DISCONNECTED = (OSError, WebSocketDisconnect, WebSocketDisconnected)
_log = structlog.get_logger()


class EditorSocket:
    """The ASGI application of one connection. Runs until the editor disconnects, session-host ends
    it or cannot be reached (1012: the client connects again), or `closing` is set. `received`: the
    messages that were taken from this editor before.
    """

    def __init__(
        self,
        host: SessionHost,
        connection_id: str,
        frames: AsyncIterator[EditorFrame],
        received: int,
        closing: asyncio.Event,
    ) -> None:
        self._host, self._connection_id, self._frames = host, connection_id, frames
        self._received, self._closing = received, closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["allow_message"](MAX_MESSAGE)
        socket = WebSocket(scope, receive, send)
        headers = ((CONNECTION, self._connection_id), (RECEIVED, str(self._received)))
        try:
            await socket.accept(
                headers=[(name.lower().encode(), value.encode()) for name, value in headers]
            )
            await self._serve(socket)
        except _DISCONNECTED as error:
            _log.info(
                "editor disconnected",
                request_id=socket.state.request_id,
                reason=type(error).__name__,
            )
        finally:
            await self._frames.aclose()  # type: ignore[attr-defined]

    async def _serve(self, socket: WebSocket) -> None:
        work = [
            asyncio.ensure_future(part)
            for part in (self._to_host(socket), self._to_editor(socket), self._wait_closing())
        ]
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
        code, reason = _end_of(next(iter(done)), socket)
        if code:
            await socket.close(code, reason)

    async def _to_host(self, socket: WebSocket) -> int:
        while (received := await socket.receive())["type"] != "websocket.disconnect":
            text = received.get("text")
            if text is None:
                return WRONG_TYPE
            message = _parse(text)
            if message is None:
                return _INVALID
            await self._host.send_editor(self._connection_id, n=self._received + 1, message=message)
            self._received += 1
        return 0

    async def _to_editor(self, socket: WebSocket) -> int:
        async for frame in self._frames:
            await socket.send_text(json.dumps(frame.message, separators=(",", ":")))
        return NORMAL

    async def _wait_closing(self) -> int:
        await self._closing.wait()
        return GOING_AWAY


def _parse(text: str) -> dict[str, Any] | None:
    """None unless it is one JSON object."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _end_of(task: "asyncio.Future[int]", socket: WebSocket) -> tuple[int, str]:
    """Close code and reason; 0 for an editor that has disconnected."""
    error = task.exception()
    if error is None:
        return task.result(), ""
    if isinstance(error, _DISCONNECTED):
        return 0, ""
    if isinstance(error, SlotUnavailable):
        return GOING_AWAY, ""
    if isinstance(error, AdapterError):
        reason = error.message.encode()[:_REASON_BYTES].decode(errors="ignore")
        return PROBLEM_BASE + error.status, reason
    _log.error("editor failed", request_id=socket.state.request_id, exc_info=error)
    return BUG, ""
