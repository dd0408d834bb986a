"""Middleware of every listener: plain ASGI, each a few lines."""

import time
from collections.abc import Callable

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected

from agentbox.core.http.headers import SECURITY_HEADERS, decode_headers, request_id
from agentbox.core.http.problems import TooBusy
from agentbox.core.http.responses import internal_error

CountRequest = Callable[[Scope, int, float], None]
_STARTS = ("http.response.start", "websocket.http.response.start")
_log = structlog.get_logger()


class RequestContextMiddleware:
    """Gives each request its id and each response its common headers; counts the request; a bug
    becomes a 500 problem and one traceback in the log.

    Sets `headers` (lower-case name to the last value) and `request_id` in the state of the scope.
    `count` gets the scope, the status (101 for a WebSocket) and the seconds until the response was
    sent; a request whose response broke off is not counted.
    """

    def __init__(self, app: ASGIApp, count: CountRequest) -> None:
        self._app, self._count = app, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, status = time.perf_counter(), 0
        state = scope["state"]
        state["headers"] = headers = decode_headers(scope["headers"])
        state["request_id"] = identity = request_id(headers)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] in _STARTS:
                status = message["status"]
                message["headers"] = _complete(message["headers"], identity)
            elif message["type"] == "websocket.accept":
                status = 101
                own = list(message.get("headers", ()))
                message["headers"] = [(b"x-request-id", identity.encode()), *own]
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        except ClientDisconnected:
            raise  # of a WebSocket: the server ends it
        except Exception as error:
            if status:
                raise
            _log.error("request failed", request_id=identity, exc_info=error)
            await internal_error(identity)(scope, receive, send_with_headers)
        self._count(scope, status, time.perf_counter() - start)


def _complete(headers: list[tuple[bytes, bytes]], identity: str) -> list[tuple[bytes, bytes]]:
    """The headers of a response; its own replace the defaults."""
    names = {name for name, _ in headers}
    return [
        *(row for row in SECURITY_HEADERS if row[0] not in names),
        (b"x-request-id", identity.encode()),
        *headers,
    ]


class OverloadMiddleware:
    """Raises TooBusy on a listener without free connections; `probe` may use its reserve."""

    def __init__(self, app: ASGIApp, *, probe: bool = False) -> None:
        self._app = app
        self._refused = ("full",) if probe else ("full", "probes")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["state"].get("crowding") in self._refused:
            raise TooBusy("cannot serve this connection: too many open connections", retry_after=1)
        await self._app(scope, receive, send)
