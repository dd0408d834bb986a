"""The public conformance suite of the Model Context Protocol, for servers and for clients."""

import json
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, IncompleteRead
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

_SECONDS = 120


def failed_checks(
    words: list[str], folder: Path, environment: Mapping[str, str] | None = None
) -> set[str]:
    """The ids of the checks of one scenario that failed; `words` call the suite. Raises AssertionError if none
    succeeded."""
    done = subprocess.run(
        [*words, "-o", str(folder)],
        capture_output=True, text=True, timeout=_SECONDS, env=environment, check=False,
    )  # fmt: skip
    found = [json.loads(path.read_text()) for path in folder.rglob("checks.json")]
    assert len(found) == 1, done.stdout + done.stderr
    assert any(check["status"] == "SUCCESS" for check in found[0]), done.stdout + done.stderr
    return {check["id"] for check in found[0] if check["status"] == "FAILURE"}


class _Handler(BaseHTTPRequestHandler):
    server: "Forwarder"

    def do_PUT(self) -> None:
        """The first part of the path leads to the address in the body from now on."""
        address = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.targets[self.path] = address
        self.send_response(204)
        self.end_headers()

    def do_POST(self) -> None:
        self._forward(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self) -> None:
        self._forward(None)

    def _forward(self, body: bytes | None) -> None:
        target = urlsplit(self.server.targets[self.path])
        connection = HTTPConnection(target.netloc, timeout=_SECONDS)
        headers = dict(self.headers.items()) | {"Host": target.netloc, "Connection": "close"}
        connection.request(self.command, target.path or "/", body, headers)
        suite = connection.sock
        answer = connection.getresponse()
        self.server.open.append(suite)
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.end_headers()
        with suppress(IncompleteRead, BrokenPipeError):  # the suite breaks off a stream
            while part := answer.read1():
                self.wfile.write(part)
                self.wfile.flush()
        answer.close()
        connection.close()

    def do_DELETE(self) -> None:
        """Ends what is open to the suite, which waits for that."""
        for suite in self.server.open:
            with suppress(OSError):
                suite.shutdown(socket.SHUT_RDWR)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


class Forwarder(ThreadingHTTPServer):
    """An address that is known before those of the suite, which has a new one for each scenario."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.targets: dict[str, str] = {}
        self.open: list[socket.socket] = []  # to the suite


@contextmanager
def forwarding() -> Iterator[Forwarder]:
    """While the context is open."""
    with Forwarder() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
