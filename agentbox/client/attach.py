"""WebSockets to an agent's pipes, for both clients: bytes in both directions, typed errors."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
from websockets.exceptions import (
    ConnectionClosed,
    ConnectionClosedOK,
    InvalidHandshake,
    InvalidStatus,
)

from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.client.transport import build_call, parse_error
from agentbox.core.errors import AgentboxError

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection
    from websockets.sync.client import ClientConnection as SyncConnection

MAX_MESSAGE = 1 << 20  # maximum bytes per message of the box
FIRST_PROBLEM_CODE = 4000  # from this close code on, a problem was sent before


def attach_url(base: str, agent_id: str, generation: int) -> str:
    """The WebSocket URL."""
    parts = urlsplit(base)
    path = build_call("attach_agent", {"id": agent_id}, query={"generation": generation}).url
    return parts._replace(scheme={"http": "ws", "https": "wss"}[parts.scheme]).geturl() + path


def connect_options(
    base: str, headers: Mapping[str, str], ssl: Any, timeout: float
) -> dict[str, Any]:
    """Options of both connect functions: no proxy, no compression, bounded messages."""
    tls_options = {"ssl": ssl} if ssl is not None and base.startswith("https") else {}
    return {
        "additional_headers": dict(headers),
        "open_timeout": timeout,
        "close_timeout": 1,
        "compression": None,
        "proxy": None,
        "max_size": MAX_MESSAGE,
        "max_queue": 16,
        **tls_options,
    }


def to_client_error(url: str, error: Exception) -> AgentboxError:
    """The problem document of the response, or BoxUnreachable."""
    if isinstance(error, InvalidStatus):
        response = error.response
        return parse_error(
            httpx.Response(
                response.status_code,
                headers=list(response.headers.raw_items()),
                content=bytes(response.body or b""),
            )
        )
    return BoxUnreachable(url, str(error) or type(error).__name__)


class _ReceivedProblems:
    """Problem documents received between the bytes."""

    def __init__(self, url: str) -> None:
        self._url, self._problem = url, None

    _problem: ApiError | None

    def add(self, text: str) -> None:
        problem = json.loads(text)
        self._problem = ApiError(int(problem.get("status", 500)), problem)

    def check(self) -> None:
        """Raises a received problem once; it concerns earlier input."""
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def check_end(self, error: ConnectionClosed) -> None:
        """Returns at the end of the agent's output. Raises ApiError or BoxUnreachable otherwise."""
        if isinstance(error, ConnectionClosedOK):
            return
        if error.rcvd is not None and error.rcvd.code >= FIRST_PROBLEM_CODE:
            self.check()
        raise BoxUnreachable(self._url, "the attached connection was closed") from error


class AsyncAttached:
    """Iterates over chunks of stdout until the end of the agent's output. One client at a time."""

    def __init__(self, url: str, socket: "ClientConnection") -> None:
        self._socket, self._problems = socket, _ReceivedProblems(url)

    async def send(self, data: bytes) -> None:
        """Writes to stdin; waits while the box's buffer is full. Raises the ApiError of rejected
        earlier input."""
        self._problems.check()
        try:
            for offset in range(0, len(data), MAX_MESSAGE):
                await self._socket.send(data[offset : offset + MAX_MESSAGE])
        except ConnectionClosed as error:
            self._problems.check_end(error)

    async def close_stdin(self) -> None:
        """Closes the agent's stdin."""
        self._problems.check()
        try:
            await self._socket.send(b"")
        except ConnectionClosed as error:
            self._problems.check_end(error)

    async def aclose(self) -> None:
        """Detaches; the agent continues. Idempotent."""
        await self._socket.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            try:
                message = await self._socket.recv()
            except ConnectionClosed as error:
                self._problems.check_end(error)
                return
            if isinstance(message, str):
                self._problems.add(message)
            else:
                yield message


class Attached:
    """Like AsyncAttached, for threads: one may send while another iterates."""

    def __init__(self, url: str, socket: "SyncConnection") -> None:
        self._socket, self._problems = socket, _ReceivedProblems(url)

    def send(self, data: bytes) -> None:
        """Like AsyncAttached.send."""
        self._problems.check()
        try:
            for offset in range(0, len(data), MAX_MESSAGE):
                self._socket.send(data[offset : offset + MAX_MESSAGE])
        except ConnectionClosed as error:
            self._problems.check_end(error)

    def close_stdin(self) -> None:
        """Closes the agent's stdin."""
        self._problems.check()
        try:
            self._socket.send(b"")
        except ConnectionClosed as error:
            self._problems.check_end(error)

    def close(self) -> None:
        """Detaches; the agent continues. Idempotent."""
        self._socket.close()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            try:
                message = self._socket.recv()
            except ConnectionClosed as error:
                self._problems.check_end(error)
                return
            if isinstance(message, str):
                self._problems.add(message)
            else:
                yield message


async def attach_async(base: str, url: str, **connect_args: Any) -> AsyncAttached:
    """Connects. Raises ApiError or BoxUnreachable."""
    from websockets.asyncio.client import connect

    try:
        return AsyncAttached(base, await connect(url, **connect_args))
    except (OSError, InvalidHandshake, TimeoutError) as error:
        raise to_client_error(base, error) from error


def attach_sync(base: str, url: str, **connect_args: Any) -> Attached:
    """Like attach_async."""
    from websockets.sync.client import connect

    try:
        return Attached(base, connect(url, **connect_args).__enter__())  # closed by `close`
    except (OSError, InvalidHandshake, TimeoutError) as error:
        raise to_client_error(base, error) from error
