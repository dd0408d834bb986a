"""An HTTP connection with limits: head size, head timeout, idle timeout, number of connections.
uvicorn (0.54) has none of these before the first request is complete, hence this subclass of its
protocol.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

MAX_HEAD = 16 << 10
IDLE_SECONDS = 5.0
MIN_BYTES_PER_SECOND = (
    1024  # minimum rate of a body in bytes a second, measured over BODY_SECONDS of reading
)
BODY_SECONDS = 10.0
OVERFLOW = 64  # connections above the limit that still get a 503; further ones are aborted
_REASONS = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of a listener. `reserved` of its `connections` are for probes only."""

    connections: int
    reserved: int = 0


class HeadTooLarge(Exception):
    """The head of a request passed MAX_HEAD."""


class BoundedHttp(HttpToolsProtocol):
    """Closes connections that are idle, slow to send the head, or over the limit."""

    bounds: ConnectionLimits

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any]
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._head = 0  # bytes of complete lines of the head
        self._unparsed = 0  # bytes since the head began, as long as it is incomplete
        self._in_head = True
        self._body, self._window = (
            0,
            (0.0, 0),
        )  # bytes of bodies; time and bytes at the last check
        self._last_activity = 0.0  # in a head: when it began; else when bytes last arrived
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.bounds.connections + OVERFLOW:
            transport.abort()
            return
        self._last_activity = self.loop.time()
        self._timer = self.loop.call_later(IDLE_SECONDS, self._check_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._in_head:
            self._last_activity = self.loop.time()
            self._body += len(data)
        self._unparsed += len(data)
        super().data_received(data)
        if self._in_head and self._unparsed > MAX_HEAD and not self.transport.is_closing():
            self._refuse(431)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head, self._unparsed = True, 0, 0
        self._last_activity = self.loop.time()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value) + 4)

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > MAX_HEAD:
            raise HeadTooLarge

    def on_headers_complete(self) -> None:
        self._in_head = False
        self.scope["state"] |= {"abort": self.transport.abort, "crowding": self._crowding()}
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        self._last_activity, self._in_head, self._head, self._unparsed = (
            self.loop.time(),
            True,
            0,
            0,
        )
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for each parser error, including errors raised by callbacks."""
        self._refuse(431 if self._head > MAX_HEAD else 400)

    def handle_websocket_upgrade(self) -> None:
        """From here on another protocol owns the connection and checks it with its own pings."""
        if self._timer is not None:
            self._timer.cancel()
        self.app_state = {**self.app_state, "crowding": self._crowding()}
        super().handle_websocket_upgrade()

    def _crowding(self) -> str:
        """`full`: answer 503 only; `probes`: serve probes only; else empty."""
        open_count = len(self.connections)
        if open_count > self.bounds.connections:
            return "full"
        return "probes" if open_count > self.bounds.connections - self.bounds.reserved else ""

    def _is_slow_body(self) -> bool:
        """Whether a body arrives so slowly that it only occupies the connection. Time without
        reading does not count.
        """
        now, (started, previous) = self.loop.time(), self._window
        reading = (
            not self._in_head
            and self.cycle is not None
            and self.cycle.more_body
            and not self.flow.read_paused
        )
        if not reading or not started:
            self._window = (now if reading else 0.0, self._body)
            return False
        if now - started < BODY_SECONDS:
            return False
        self._window = now, self._body
        return self._body - previous < MIN_BYTES_PER_SECOND * (now - started)

    def _check_idle(self) -> None:
        if self._is_slow_body() and not self.cycle.response_started:
            self._refuse(408)
            return
        is_waiting = (
            self._in_head
            or self.cycle is None
            or self.cycle.response_complete
            or self.cycle.more_body
        )
        remaining = self._last_activity + IDLE_SECONDS - self.loop.time()
        if is_waiting and remaining <= 0:
            self.transport.close()
            return
        self._timer = self.loop.call_later(
            max(remaining, 0.05) if is_waiting else IDLE_SECONDS, self._check_idle
        )

    def _refuse(self, status: int) -> None:
        title = _REASONS[status]
        body = json.dumps({"type": "about:blank", "title": title, "status": status}).encode()
        head = (
            f"HTTP/1.1 {status} {title}\r\ncontent-type: application/problem+json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
