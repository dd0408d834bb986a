"""An MCP server over HTTP in this process: sessions, JSON and server-sent events, a bearer token."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "of-the-server-0123456789"
TOOLS = [
    {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}},
    {"name": "events", "description": "Answers by events.", "inputSchema": {"type": "object"}},
    {"name": "elsewhere", "description": "Redirects.", "inputSchema": {"type": "object"}},
]


class Handler(BaseHTTPRequestHandler):
    """`requests` of the server has the headers of each request."""

    server: "Server"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(dict(self.headers.items()))
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._answer(401, b"{}")
        elif "id" not in message:
            self._answer(202, b"")
        elif message["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}  # fmt: skip
            self._answer(200, _response(message, result), ("Mcp-Session-Id", "s-1"))
        elif self.headers["Mcp-Session-Id"] != "s-1":
            self._answer(400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no session"}}')  # fmt: skip
        elif message["method"] == "tools/list":
            self._answer(200, _response(message, {"tools": TOOLS}))
        else:
            self._call(message)

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _call(self, message: Any) -> None:
        name, text = message["params"]["name"], str(message["params"]["arguments"])
        response = _response(message, {"content": [{"type": "text", "text": text}]})
        if name == "echo":
            self._answer(200, response)
        elif name == "elsewhere":
            self._answer(307, b"", ("Location", "http://127.0.0.1:1/"))
        else:
            note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'  # fmt: skip
            body = b"".join(b"event: message\ndata: " + part + b"\n\n" for part in (note, response))
            self._answer(200, body, kind="text/event-stream")

    def _answer(
        self, status: int, body: bytes, *headers: tuple[str, str], kind: str = "application/json"
    ) -> None:
        self.send_response(status)
        for name, value in (*headers, ("Content-Type", kind), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """On a free port of loopback."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, str]] = []


def _response(message: Any, result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


@contextmanager
def serving() -> Iterator[Server]:
    """While the context is open."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
