"""A connection of an editor to the API, over several WebSockets: a lost one is opened again for 60
seconds and goes on where it was. Each side counts the messages that it got, so that none is lost
and none comes twice.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from agentbox.client.attach import connect_options, socket_url, to_client_error
from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.client.transport import base_headers
from agentbox.core.errors import AgentboxError

MAX_MESSAGE: Final = 16 << 20  # bytes of one message, as `acp.max_message`
RECONNECT_SECONDS: Final = 60.0  # as long as session-host keeps the connection
_CONNECT_SECONDS: Final = 10.0
_PAUSES: Final = (0.05, 0.2, 0.5, 1.0)  # seconds before each attempt; the last is repeated
_NORMAL, _PROBLEM = 1000, 4000  # close codes: the end, and 4000 + the status of a problem
Locate = Callable[[], tuple[str, str]]  # URL and token of the box as it runs now


class BoxConnection:
    """Messages both ways, as JSON objects."""

    def __init__(self, locate: Locate, query: Mapping[str, str]) -> None:
        """`query`: agent and session that the editor asked for."""
        self._locate, self._query = locate, query
        self._connection_id = ""
        self._received = 0  # messages of the box
        self._sent = 0  # messages of the editor that were sent or wait
        self._unconfirmed: deque[tuple[int, dict[str, Any]]] = deque()
        self._waiting = asyncio.Event()
        self._is_closing = False

    def send(self, message: dict[str, Any]) -> None:
        """Sends it as soon as there is a connection."""
        self._sent += 1
        self._unconfirmed.append((self._sent, message))
        self._waiting.set()

    def close(self) -> None:
        """No more messages: what waits is sent, then the connection is closed."""
        self._is_closing = True
        self._waiting.set()

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Messages of the box until its end or `close`. Raises ApiError for what the box refuses,
        and BoxUnreachable if it cannot be reached for too long.
        """
        while True:
            socket = await self._open()
            sending = asyncio.create_task(self._send_all(socket))
            try:
                async for text in socket:
                    message = json.loads(text)
                    self._received += 1
                    self._confirm(message)
                    yield message
            except ConnectionClosed:
                pass
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
                await socket.close()
            if self._is_over(socket):
                return

    def _is_over(self, socket: ClientConnection) -> bool:
        """Raises ApiError for a problem."""
        code = socket.close_code or 0
        if code >= _PROBLEM:
            raise ApiError(code - _PROBLEM, {"detail": socket.close_reason})
        return self._is_closing or code == _NORMAL

    async def _send_all(self, socket: ClientConnection) -> None:
        done = self._unconfirmed[0][0] - 1 if self._unconfirmed else self._sent
        while True:
            self._waiting.clear()
            for number, message in [*self._unconfirmed]:
                if number > done:
                    await socket.send(json.dumps(message, separators=(",", ":")))
                    done = number
            if self._is_closing and done == self._sent:
                await socket.close()
                return
            await self._waiting.wait()

    def _confirm(self, message: Mapping[str, Any]) -> None:
        """An answer says that its request was taken, and what was sent before it."""
        if "method" in message or message.get("id") is None:
            return
        found = [
            number
            for number, sent in self._unconfirmed
            if "method" in sent and sent.get("id") == message["id"]
        ]
        if found:
            self._forget(found[0])

    def _forget(self, number: int) -> None:
        while self._unconfirmed and self._unconfirmed[0][0] <= number:
            self._unconfirmed.popleft()

    async def _open(self) -> ClientConnection:
        """A WebSocket that goes on where the last one ended."""
        end, attempt = time.monotonic() + RECONNECT_SECONDS, 0
        while True:
            try:
                return await self._connect()
            except (ApiError, BoxUnreachable) as error:
                if not self._may_retry(error) or time.monotonic() > end:
                    raise
            await asyncio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
            attempt += 1

    def _may_retry(self, error: AgentboxError) -> bool:
        """The first connection says at once what is wrong."""
        if not self._connection_id:
            return False
        return isinstance(error, BoxUnreachable) or (
            isinstance(error, ApiError) and error.retryable
        )

    async def _connect(self) -> ClientConnection:
        base, token = self._locate()
        query: dict[str, object] = {**self._query}
        if self._connection_id:
            query |= {"connection": self._connection_id, "since": self._received}
        options = connect_options(base, base_headers(token), None, _CONNECT_SECONDS)
        try:
            socket = await connect(
                socket_url(base, "connect_editor", {}, query),
                **{**options, "max_size": MAX_MESSAGE},
            )
        except (OSError, InvalidHandshake, InvalidStatus, TimeoutError) as error:
            raise to_client_error(base, error) from error
        assert socket.response is not None
        headers = socket.response.headers
        self._connection_id = headers["Acp-Connection-Id"]
        self._forget(int(headers["Agentbox-Received"]))
        return socket
