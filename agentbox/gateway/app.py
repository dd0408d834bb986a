"""Dispatches plain HTTP requests of the gateway by path prefix."""

import json
from collections.abc import Mapping
from typing import Any

from agentbox.core.http.listener import AsgiApp

_TOO_MANY_CONNECTIONS = (
    "cannot serve this connection: too many connections are open. Try again in a second."
)


class GatewayApp:
    """Passes a request to the application mounted at the longest matching path prefix."""

    def __init__(self, mounts: Mapping[str, AsgiApp]) -> None:
        self._mounts = sorted(mounts.items(), key=lambda row: -len(row[0]))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        state = scope["state"] if scope["type"] == "websocket" else scope["extensions"]["agentbox"]
        if state["crowding"]:
            await send_error(scope, send, 503, _TOO_MANY_CONNECTIONS)
            return
        path = scope["path"]
        for prefix, app in self._mounts:
            if path == prefix or path.startswith(prefix + "/"):
                await app(scope, receive, send)
                return
        prefixes = ", ".join(sorted(prefix for prefix, _ in self._mounts))
        await send_error(
            scope,
            send,
            404,
            f"cannot find this path: the gateway serves {prefixes}, and absolute URLs as a proxy.",
        )


async def send_error(scope: Any, send: Any, status: int, message: str) -> None:
    """Sends `{"error": message}`. A WebSocket is closed with code 1013 (RFC 6455: try again
    later)."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1013, "reason": message[:120]})
        return
    body = json.dumps({"error": message}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def unavailable_app(feature: str, reason: str = "{} is not supported in this release") -> AsgiApp:
    """Returns an application that answers 503, for a component this box does not run."""

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        await send_error(scope, send, 503, f"cannot serve this path: {reason.format(feature)}.")

    return app
