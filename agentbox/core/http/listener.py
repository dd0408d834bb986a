"""A listening socket that serves an ASGI application through uvicorn's protocol, without uvicorn's
process manager.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from functools import partial
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.http.connection import IDLE_SECONDS, BoundedHttp, ConnectionLimits

AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]
ProtocolFactory = Callable[[], asyncio.Protocol]
ProtocolWrapper = Callable[[ProtocolFactory], asyncio.Protocol]
BACKLOG = 512
MAX_MESSAGE = 1 << 20  # bytes of one WebSocket message


def bind(address: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet. Raises AgentboxError (exit 7) if the address is in
    use or not local.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # With the protocol set, asyncio enables TCP_NODELAY on accepted sockets: otherwise each
    # response waits 40 ms for an ACK.
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((address, port))
    except OSError as error:
        sock.close()
        raise AgentboxError(
            f"cannot listen on {address}:{port}: {error.strerror}",
            "Stop the program that uses that port, or choose an address of this machine.",
            exit_code=ExitCode.BUSY,
        ) from error
    return sock


def _websocket(
    config: Config, server_state: ServerState, app_state: dict[str, Any]
) -> asyncio.Protocol:
    """Imported on first use. There is no ping timeout: a slow peer may be waiting for an agent that
    does not read. `allow_message` in the state raises the bound of a message, once the caller is
    known.
    """
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    def allow_message(size: int) -> None:
        protocol.conn.max_message_size = size

    state = {**app_state, "allow_message": allow_message}
    protocol = WebSocketsSansIOProtocol(config=config, server_state=server_state, app_state=state)
    return protocol


class Listener:
    """Serves `app` on a socket from `open` to `close`."""

    def __init__(
        self,
        app: AsgiApp,
        sock: socket.socket,
        bounds: ConnectionLimits,
        wrapper: ProtocolWrapper | None = None,
        protocol: type[BoundedHttp] = BoundedHttp,
    ) -> None:
        """`wrapper` gets the protocol factory and returns the protocol that is placed in front of
        it.
        """
        self._sock = sock
        self._wrapper = wrapper
        self._protocol = type("Bounded", (protocol,), {"bounds": bounds})
        self._config = Config(
            app,
            http=self._protocol,
            loop="none",
            ws=_websocket,  # type: ignore[arg-type]
            ws_max_size=MAX_MESSAGE,
            ws_per_message_deflate=False,
            ws_ping_timeout=None,
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=round(IDLE_SECONDS),
        )
        self._state = ServerState()
        self._server: asyncio.AbstractServer | None = None
        self._date_timer: asyncio.TimerHandle | None = None

    @property
    def port(self) -> int:
        """The port that was bound."""
        return int(self._sock.getsockname()[1])

    async def open(self) -> None:
        """Returns once the kernel accepts connections."""
        self._config.load()
        loop = asyncio.get_running_loop()
        self._update_date()
        factory: ProtocolFactory = self._create_protocol
        if self._wrapper is not None:
            factory = partial(self._wrapper, self._create_protocol)
        self._server = await loop.create_server(factory, sock=self._sock, backlog=BACKLOG)

    def _create_protocol(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self._protocol(self._config, self._state, {})
        return protocol

    def _update_date(self) -> None:
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        self._date_timer = asyncio.get_running_loop().call_later(1.0, self._update_date)

    async def close(self, grace: float = 1.0) -> None:
        """Stops accepting, waits `grace` seconds for requests to end, then aborts them."""
        if self._server is None or self._date_timer is None:
            return
        self._server.close()
        self._date_timer.cancel()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(list(self._state.tasks), timeout=grace)
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
