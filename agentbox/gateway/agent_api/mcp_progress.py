"""Progress of a long call, as server-sent events on its own response.

Source: modelcontextprotocol.io/specification/2026-07-28/basic/utilities/progress.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from agentbox.gateway.agent_api.app import respond
from agentbox.gateway.agent_api.call_stream import CallStream

STREAM_AFTER_SECONDS: Final = 1.0  # a call that ends earlier is answered by a JSON body
INTERVAL_SECONDS: Final = 5.0
_TOKEN_TYPES: Final = (str, int)


def token(request: Request, message: dict[str, Any]) -> str | int | None:
    """The progress token of a request whose client reads streams; None without one."""
    if "text/event-stream" not in request.headers.get("accept", ""):
        return None
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    found = meta.get("progressToken") if isinstance(meta, dict) else None
    return found if isinstance(found, _TOKEN_TYPES) and not isinstance(found, bool) else None


async def respond_with_progress(
    call: Coroutine[Any, Any, bytes | None], progress_token: str | int, status: Callable[[], int]
) -> Response:
    """The JSON response of a call that ends soon, otherwise a stream. `status` is read when the
    call has ended. A client that disconnects cancels the call.
    """
    running = asyncio.ensure_future(call)
    started = time.monotonic()
    try:
        done, _ = await asyncio.wait({running}, timeout=STREAM_AFTER_SECONDS)
    except asyncio.CancelledError:
        running.cancel()
        raise
    if done:
        return respond(running.result(), status())
    return CallStream(running, _events(running, progress_token, started))


async def _events(
    running: "asyncio.Future[bytes | None]", progress_token: str | int, started: float
) -> AsyncIterator[bytes]:
    while not running.done():
        params = {
            "progressToken": progress_token,
            "progress": round(time.monotonic() - started, 1),
            "message": "seconds since the call began",
        }
        notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        yield _event(json.dumps(notification, separators=(",", ":")).encode())
        await asyncio.wait({running}, timeout=INTERVAL_SECONDS)
    yield _event(running.result() or b"")


def _event(data: bytes) -> bytes:
    return b"event: message\ndata: " + data + b"\n\n"
