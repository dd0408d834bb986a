"""The answer to a plain liveness probe."""

import time

from starlette.types import ASGIApp, Receive, Scope, Send

from agentbox.api.metrics.http_metrics import HttpMetrics
from agentbox.core.http.headers import SECURITY_HEADERS
from agentbox.core.ids import uuid7

_LIVE = b'{"live":true,"uptime":%s}'
_BODY_HEADERS = (b"content-length", b"transfer-encoding")


class Uptime:
    """Seconds since this process started to serve, to the millisecond."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def __call__(self) -> float:
        return round(time.monotonic() - self._started, 3)


class LivezShortcut:
    """Answers a GET or HEAD of `/livez` without a body, on a listener with free capacity, before
    routing and any check.
    """

    def __init__(self, app: ASGIApp, uptime: Uptime, metrics: HttpMetrics) -> None:
        self._app, self._uptime, self._metrics = app, uptime, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/livez" or not _is_plain_probe(scope):
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        body = _LIVE % str(self._uptime()).encode()
        headers = [
            *SECURITY_HEADERS,
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-request-id", uuid7().encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        self._metrics.count("/livez", scope["method"], 200, time.perf_counter() - start)


def _is_plain_probe(scope: Scope) -> bool:
    if scope["method"] not in ("GET", "HEAD") or scope["state"].get("crowding") == "full":
        return False
    return not any(name in _BODY_HEADERS for name, _ in scope["headers"])
