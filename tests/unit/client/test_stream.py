"""Streams are resumed where they broke. The server here is a real one, on a socket, that misbehaves
by script."""

import http.server
import json
import threading
from collections.abc import Iterator

import pytest

from agentbox.client import ApiError, AsyncBoxClient, BoxClient, BoxUnreachable

Script = list[tuple[int, list[bytes], bool]]  # status, chunks, whether the end is proper


class Server(http.server.ThreadingHTTPServer):
    """Answers each request by the next line of its script and records the Last-Event-ID it
    received."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = list(script)
        self.asked: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.headers["Last-Event-ID"])
        status, chunks, proper = self.server.script.pop(0)
        self.send_response(status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        if proper:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Sends nothing."""


def event(number: int, kind: str = "stdout", data: object = None) -> bytes:
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data or {'n': number})}\n\n".encode()


@pytest.fixture
def serve() -> Iterator[object]:
    running: list[Server] = []

    def start(script: Script) -> Server:
        server = Server(script)
        running.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def test_a_broken_stream_goes_on_after_its_last_id(serve) -> None:  # type: ignore[no-untyped-def]
    """Each event arrives once, in order, over three connections; half an event before a break is
    not delivered."""
    server = serve(
        [
            (200, [event(1), event(2)[:-5]], False),
            (503, [b'{"code":"slot-unavailable","retryable":true}'], True),
            (200, [event(2), event(3, "task")], True),
        ]
    )
    with BoxClient(server.url) as client:
        result = [
            (item.id, item.event) for item in client.stream("task_logs", {"id": "x"}, last="task")
        ]
    assert result == [("1", "stdout"), ("2", "stdout"), ("3", "task")]
    assert server.asked == [None, "1", "1"]


async def test_the_asynchronous_client_does_the_same(serve) -> None:  # type: ignore[no-untyped-def]
    """As above, awaited."""
    server = serve([(200, [event(1)], False), (200, [event(2, "task")], True)])
    async with AsyncBoxClient(server.url) as client:
        result = [item.id async for item in client.stream("task_logs", {"id": "x"}, last="task")]
    assert result == ["1", "2"]
    assert server.asked == [None, "1"]


def test_a_refusal_is_raised_at_once(serve) -> None:  # type: ignore[no-untyped-def]
    """410 is no break: the caller gets the problem's members."""
    server = serve(
        [(410, [b'{"code":"cursor-expired","detail":"gone","oldest":7,"retryable":false}'], True)]
    )
    with BoxClient(server.url) as client, pytest.raises(ApiError, match="gone") as caught:
        list(client.stream("task_logs", {"id": "x"}, last="task"))
    assert caught.value.code == "cursor-expired"
    assert caught.value.problem["oldest"] == 7


def test_an_error_event_is_raised(serve) -> None:  # type: ignore[no-untyped-def]
    """The server's reason for ending a stream reaches the caller as the same error as before the first byte."""
    problem = {
        "code": "cursor-expired",
        "status": 410,
        "detail": "gone",
        "oldest": 3,
        "retryable": False,
    }
    server = serve([(200, [event(1), event(1, "error", problem)], False)])
    with BoxClient(server.url) as client, pytest.raises(ApiError, match="gone"):
        list(client.stream("task_logs", {"id": "x"}, last="task"))


def test_patience_ends(serve) -> None:  # type: ignore[no-untyped-def]
    """A server that is down is given up with one message."""
    server = serve([(200, [event(1)], False)])
    with BoxClient(server.url) as client:
        stream = client.stream("task_logs", {"id": "x"}, last="task", reconnect_timeout=0.3)
        assert next(stream).id == "1"
        server.shutdown()
        server.server_close()
        with pytest.raises(BoxUnreachable, match="cannot reach the box at"):
            next(stream)


def test_nothing_there_is_said_in_a_sentence() -> None:
    """A call without a listener is BoxUnreachable, exit code 8."""
    with BoxClient("http://127.0.0.1:9") as client, pytest.raises(BoxUnreachable) as caught:
        client.livez()
    assert caught.value.exit_code == 8


def test_the_environment_names_no_proxy(serve, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """A proxy of the operator's shell is not used for a box on loopback."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    server = serve([(200, [b'{"live": true, "uptime": 1.0}'], True)])
    with BoxClient(server.url) as client:
        assert client.livez().live is True
