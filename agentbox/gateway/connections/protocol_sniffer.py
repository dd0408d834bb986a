"""Detects from the first line of a connection whether it is for the proxy or for HTTP applications.

A proxy client sends `CONNECT host:port` or an absolute URL (RFC 9112 section 3.2) for the lifetime
of the connection; other clients request a path.
"""

import asyncio
from collections.abc import Callable
from typing import Literal

FIRST_LINE_SECONDS = 5.0  # until the target of the first request must have begun
MAX_PENDING = 256  # connections without a first line
_MAX_METHOD = 32  # bytes; the parser rejects longer ones

ProtocolFactory = Callable[[], asyncio.Protocol]


class ProtocolSniffer(asyncio.Protocol):
    """Hands the connection with the received bytes over to a protocol from `make_http` or
    `make_proxy`. `pending` holds undetected connections; the oldest is aborted above the limit."""

    def __init__(
        self,
        make_http: ProtocolFactory,
        make_proxy: ProtocolFactory,
        pending: "dict[ProtocolSniffer, None]",
    ) -> None:
        self._make_http, self._make_proxy, self._pending = make_http, make_proxy, pending
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._pending[self] = None
        if len(self._pending) > MAX_PENDING:
            next(iter(self._pending)).abort()
        self._timer = asyncio.get_running_loop().call_later(FIRST_LINE_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        self._buffer = (self._buffer + data).lstrip(
            b"\r\n"
        )  # skip empty lines before a request (RFC 9112 section 2.2)
        kind = detect_protocol(self._buffer)
        if kind is None or self._transport is None:
            return
        self._unregister()
        transport, self._transport = self._transport, None
        protocol = self._make_proxy() if kind == "proxy" else self._make_http()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(self._buffer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unregister()

    def abort(self) -> None:
        """Closes the connection immediately."""
        self._unregister()
        if self._transport is not None:
            self._transport.abort()

    def _unregister(self) -> None:
        self._pending.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def detect_protocol(data: bytes) -> Literal["http", "proxy"] | None:
    """Returns None while undecided. Anything that is not a request line goes to the HTTP parser."""
    line = data.lstrip(b"\r\n")
    method, space, target = line.partition(b" ")
    if not space or not target:
        return "http" if len(line) > _MAX_METHOD or b"\n" in line else None
    if method == b"CONNECT":
        return "proxy"
    return "http" if target[:1] in (b"/", b"*") else "proxy"
