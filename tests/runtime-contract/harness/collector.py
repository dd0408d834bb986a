"""A receiver of traces: notes what is posted to it, whichever address of this host it was reached by."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Collector(ThreadingHTTPServer):
    """`posted` are (path, body) in order of arrival."""

    daemon_threads = True

    def __init__(self) -> None:
        self.posted: list[tuple[str, bytes]] = []
        super().__init__(("0.0.0.0", 0), _Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """What is posted is stored, not printed."""


@contextmanager
def collector() -> Iterator[Collector]:
    """Listens while the body runs."""
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
