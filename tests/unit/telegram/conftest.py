"""A service that speaks sendMessage of the Bot API, for real over HTTP: the one thing here that cannot be reached."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Service(ThreadingHTTPServer):
    """Takes messages, after the answers in `refusals`: (status, document)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.taken: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.refusals: list[tuple[int, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.paths.append(self.path)
        status, said = self.server.refusals.pop(0) if self.server.refusals else (200, {"ok": True})
        if status == 200:
            self.server.taken.append(body)
        answer = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()
