# Written by tools/sync_client.py from async_client/attach.py.
"""WebSockets to an agent's pipes: bytes in both directions, typed errors."""

from collections.abc import Iterator
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from agentbox.client.attach import MAX_MESSAGE, ReceivedProblems, to_client_error


class Attached:
    """Iterates over chunks of stdout until the end of the agent's output. One client at a time."""

    def __init__(self, url: str, socket: ClientConnection) -> None:
        self._socket, self._problems = socket, ReceivedProblems(url)

    def send(self, data: bytes) -> None:
        """Writes to stdin; waits while the box's buffer is full. Raises the ApiError of rejected
        earlier input."""
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


def attach(base: str, url: str, **connect_args: Any) -> Attached:
    """Connects. Raises ApiError or BoxUnreachable."""
    try:
        return Attached(base, connect(url, **connect_args).__enter__())
    except (OSError, InvalidHandshake, TimeoutError) as error:
        raise to_client_error(base, error) from error
