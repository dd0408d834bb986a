"""What the gateway answers over plain HTTP: each path belongs to one application."""

import json
from collections.abc import Mapping
from typing import Any

from agentbox.core.http.listener import Asgi

_CROWDED = "cannot serve this connection: too many are open. Try again in a second."


class App:
    """Hands a request to the application whose prefix its path has: itself, or followed by a slash. The longest wins."""

    def __init__(self, mounts: Mapping[str, Asgi]) -> None:
        self._mounts = sorted(mounts.items(), key=lambda row: -len(row[0]))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        state = scope["state"] if scope["type"] == "websocket" else scope["extensions"]["agentbox"]
        if state["crowding"]:
            await say(scope, send, 503, _CROWDED)
            return
        path = scope["path"]
        for prefix, app in self._mounts:
            if path == prefix or path.startswith(prefix + "/"):
                await app(scope, receive, send)
                return
        known = ", ".join(sorted(prefix for prefix, _ in self._mounts))
        await say(scope, send, 404, f"cannot find this path: the gateway serves {known}, and as a proxy absolute URLs.")


async def say(scope: Any, send: Any, status: int, sentence: str) -> None:
    """One sentence as `{"error": …}`. To a WebSocket only that it is closed (code 1013, RFC 6455's registry: try again later)."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1013, "reason": sentence[:120]})
        return
    body = json.dumps({"error": sentence}).encode()
    head = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


def absent(what: str, why: str = "this release has no {} yet") -> Asgi:
    """Answers 503 for a part that this box does not have."""

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        await say(scope, send, 503, f"cannot serve this path: {why.format(what)}.")

    return app
