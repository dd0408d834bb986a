"""One port for a proxy and for applications: the first line of a connection says which of them it is for.

A client of a proxy sends `CONNECT host:port` or an absolute URL (RFC 9112 section 3.2), and keeps to that for as long as
the connection lives; everything else asks for a path.
"""

import asyncio
from collections.abc import Callable
from typing import Literal

LINE_SECONDS = 5.0  # in which the target of the first request must have begun
SILENT = 256  # connections whose first line has not begun
_LONGEST_METHOD = 32  # bytes; a longer one is for the parser to refuse

Make = Callable[[], asyncio.Protocol]


class Front(asyncio.Protocol):
    """Gives the connection to what `http` or `proxy` makes, with all that was said so far. `silent` holds those that have
    not said yet: one too many takes the place of the oldest."""

    def __init__(self, http: Make, proxy: Make, silent: "dict[Front, None]") -> None:
        self._http, self._proxy, self._silent = http, proxy, silent
        self._said = b""
        self._transport: asyncio.Transport | None = None
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._silent[self] = None
        if len(self._silent) > SILENT:
            next(iter(self._silent)).cut()
        self._clock = asyncio.get_running_loop().call_later(LINE_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        self._said = (self._said + data).lstrip(
            b"\r\n"
        )  # empty lines before a request say nothing (RFC 9112 section 2.2)
        kind = asks_for(self._said)
        if kind is None or self._transport is None:
            return
        self._forget()
        transport, self._transport = self._transport, None
        protocol = self._proxy() if kind == "proxy" else self._http()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(self._said)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()

    def cut(self) -> None:
        """At once."""
        self._forget()
        if self._transport is not None:
            self._transport.abort()

    def _forget(self) -> None:
        self._silent.pop(self, None)
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


def asks_for(said: bytes) -> Literal["http", "proxy"] | None:
    """Which of them the bytes are for; None while they do not tell. What is no request line goes to the HTTP parser."""
    line = said.lstrip(b"\r\n")
    method, space, target = line.partition(b" ")
    if not space or not target:
        return "http" if len(line) > _LONGEST_METHOD or b"\n" in line else None
    if method == b"CONNECT":
        return "proxy"
    return "http" if target[:1] in (b"/", b"*") else "proxy"
