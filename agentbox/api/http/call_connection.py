"""The connection of a call that lasts, and how it is ended for a caller who may no longer make
it.
"""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY_VIOLATION: Final = 1008  # RFC 6455 7.4.1


class CallConnection:
    """Serves one response. Of HTTP the connection is aborted: a reader sees that it is not the
    end.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._closed = False

    async def serve(self, response: ASGIApp) -> None:
        """Runs until the response is sent."""
        await response(self._scope, self._receive, self._send_noted)

    async def abort(self) -> None:
        """Ends the connection."""
        if self._scope["type"] == "http":
            self._scope["state"]["abort"]()
        elif not self._closed:
            await self._send({"type": "websocket.close", "code": _POLICY_VIOLATION})

    async def _send_noted(self, message: Message) -> None:
        self._closed = self._closed or message["type"] == "websocket.close"
        await self._send(message)
