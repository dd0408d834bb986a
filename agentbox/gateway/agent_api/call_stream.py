"""The response of a call of a tool that streams server-sent events until the call ends."""

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class CallStream(StreamingResponse):
    """Cancels the call when the response ends, even if its stream never began."""

    def __init__(
        self, running: "asyncio.Future[bytes | None]", events: AsyncIterator[bytes]
    ) -> None:
        super().__init__(
            events, headers={"Cache-Control": "no-store"}, media_type="text/event-stream"
        )
        self._running = running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._running.cancel()
