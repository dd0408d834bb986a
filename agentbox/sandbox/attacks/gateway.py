"""Talking to the gateway as an agent does: the port and the token from the agent's own environment, bytes by hand."""

import base64
import http.client
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from agentbox.core.paths import environment
from agentbox.sandbox.attacks.attempts import errno_name
from agentbox.sandbox.attacks.case import TargetInfo, TargetMissing

_SECONDS = 15.0
_MAX_BYTES = 1 << 16


def port() -> int:
    """Where the gateway listens. Raises Absent for an agent that was told of none."""
    number = urlsplit(environment().get("AGENTBOX_URL", "")).port
    if not number:
        raise TargetMissing("this agent was told of no gateway")
    return number


def token() -> str:
    """The agent's own. Raises Absent."""
    if not (value := environment().get("AGENTBOX_TOKEN", "")):
        raise TargetMissing("this agent has no token")
    return value


def proxy(
    target: str, *, method: str = "CONNECT", bearer: str | None = None, head: str = ""
) -> str:
    """The status that the forward proxy answers, or an errno. `bearer` "" sends none, None the agent's own."""
    credential = token() if bearer is None else bearer
    user = base64.b64encode(f"agent:{credential}".encode()).decode()
    login = f"Proxy-Authorization: Basic {user}\r\n" if credential else ""
    host = target.split("://")[-1].partition("/")[0]
    return status(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{login}{head}\r\n".encode())


def post(
    path: str, body: bytes, *, bearer: str | None = None, method: str = "POST", head: str = ""
) -> str:
    """The status that an application behind the gateway answers to JSON."""
    credential = token() if bearer is None else bearer
    login = f"Authorization: Bearer {credential}\r\n" if credential else ""
    first = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port()}\r\n{login}Content-Type: application/json\r\n"
    return status(
        f"{first}{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
    )


@contextmanager
def keep_connection() -> Iterator[Callable[[str, bytes, str], str]]:
    """Posts of JSON over one connection: path, body and bearer token to the status, `closed` once it is cut."""
    connection = http.client.HTTPConnection("127.0.0.1", port(), timeout=_SECONDS)

    def send(path: str, body: bytes, bearer: str) -> str:
        try:
            head = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
            connection.request("POST", path, body, head)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            return "closed"
        return str(answer.status)

    connection.connect()
    connection.auto_open = 0  # never another one
    try:
        yield send
    finally:
        connection.close()


def status(request: bytes) -> str:
    """The three digits of the answer to those bytes; `closed` where there was none."""
    answer = exchange(request).split(None, 2)
    return answer[1].decode("ascii", "replace") if len(answer) > 1 else "closed"


def exchange(request: bytes, *, read_all: bool = False) -> bytes:
    """What comes back, up to 64 KiB: to the end of a head that says 200, or the `whole`. An errno is told as the second word
    of a line. Raises Absent when nothing listens."""
    response = b""
    try:
        with socket.create_connection(("127.0.0.1", port()), timeout=_SECONDS) as sock:
            sock.sendall(request)
            while len(response) < _MAX_BYTES and (chunk := sock.recv(_MAX_BYTES)):
                response += chunk
                if not read_all and b"\r\n\r\n" in response and b"200" in response[:16]:
                    break  # a tunnel stays open: that it was made is all there is to know
    except ConnectionRefusedError:
        raise TargetMissing("nothing listens where the gateway should be") from None
    except OSError as error:
        return response or f"- {errno_name(error.errno)}".encode()
    return response


def providers(facts: TargetInfo) -> tuple[str, ...]:
    """Names of the model providers that this box has. Raises Absent where there is none."""
    if not facts.providers:
        raise TargetMissing("off: no provider is enabled")
    return facts.providers
