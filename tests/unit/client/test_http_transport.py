"""The transport of the synchronous client: against a real server on a socket that misbehaves by script."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from agentbox.client.http_transport import ConnectError, HttpTransport, TransportError

Conversation = Callable[[socket.socket], None]
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Twice: a\r\nX-Twice: b\r\n\r\n{}"


class Server:
    """Plays one conversation for each connection, in order."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0

    def serve(self, *conversations: Conversation) -> None:
        threading.Thread(target=self._run, args=(conversations,), daemon=True).start()

    def _run(self, conversations: tuple[Conversation, ...]) -> None:
        for hold in conversations:
            connection, _ = self._listener.accept()
            self.connections += 1
            with connection:
                hold(connection)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def server() -> Iterator[Server]:
    result = Server()
    yield result
    result.close()


def transport(server: Server) -> HttpTransport:
    return HttpTransport(server.url, headers={}, timeout=5)


def head(connection: socket.socket) -> bytes:
    """The request, up to the empty line."""
    result = b""
    while b"\r\n\r\n" not in result:
        result += connection.recv(65536)
    return result


def test_a_connection_is_used_again(server: Server) -> None:
    """Two requests, one connection; headers in any case, repeated ones joined."""

    def two(connection: socket.socket) -> None:
        for _ in range(2):
            head(connection)
            connection.sendall(ANSWER)
        connection.recv(1)

    server.serve(two)
    client = transport(server)
    for _ in range(2):
        result = client.request("GET", "/", headers={})
        assert (result.status_code, result.json(), result.headers["x-TWICE"]) == (200, {}, "a, b")
    assert server.connections == 1
    client.close()


def test_a_connection_that_the_box_closed_is_not_used(server: Server) -> None:
    """The second request opens one of its own."""
    closed = threading.Event()

    def once(connection: socket.socket) -> None:
        head(connection)
        connection.sendall(ANSWER)
        connection.shutdown(socket.SHUT_RDWR)
        closed.set()

    server.serve(once, once)
    client = transport(server)
    client.request("GET", "/", headers={})
    assert closed.wait(5)
    assert client.request("GET", "/", headers={}).content == b"{}"
    assert server.connections == 2


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
        b"HTTP/1.1 200 OK\r\nX-Half",
        b"",
    ],
)
def test_an_answer_that_ends_early_is_an_error(server: Server, response: bytes) -> None:
    """Never a shorter body."""

    def half(connection: socket.socket) -> None:
        head(connection)
        connection.sendall(response)

    server.serve(half)
    with pytest.raises(TransportError):
        transport(server).request("GET", "/", headers={})


def test_a_refusal_before_the_end_of_the_body_is_read(server: Server) -> None:
    """A box at capacity reports why, and the caller gets it."""

    def refuse(connection: socket.socket) -> None:
        head(connection)
        connection.sendall(
            b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
        )
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 20):
            continue

    server.serve(refuse)
    result = transport(server).request(
        "PUT", "/", headers={}, content=(b"x" * (1 << 20) for _ in range(8))
    )
    assert result.status_code == 413


def test_no_listener_is_told_from_a_lost_answer(server: Server) -> None:
    """Of the first nothing was sent, so a caller may try again."""
    server.close()
    with pytest.raises(ConnectError):
        transport(server).request("GET", "/", headers={})
