"""HTTP by hand, for what a client library would not send."""

import json
import socket
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """A response read to its end. `status` 0: the server closed the connection without one."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def connect(port: int, seconds: float = 10) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=seconds)


def ask(port: int, head: str, body: bytes = b"") -> Answer:
    """Sends a request on a connection of its own. Lines of `head` end in LF; Host is added if
    absent."""
    lines = [line.strip() for line in head.strip().splitlines()]
    if not any(line.lower().startswith("host:") for line in lines):
        lines.append("Host: 127.0.0.1")
    with connect(port) as sock:
        sock.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        return read(sock)


def read(sock: socket.socket) -> Answer:
    """One response; its body by Content-Length, or to the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece:
            return Answer(0, {}, data)
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)
    }
    while len(body) < int(headers.get("content-length", 0)):
        piece = sock.recv(65536)
        if not piece:
            break
        body += piece
    return Answer(int(first.split()[1]), headers, body)
