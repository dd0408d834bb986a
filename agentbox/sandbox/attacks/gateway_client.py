"""Talks to the gateway as an agent does: port and token from the environment, HTTP by hand."""

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
    """The gateway's port. Raises TargetMissing for an agent without a gateway."""
    number = urlsplit(environment().get("AGENTBOX_URL", "")).port
    if not number:
        raise TargetMissing("this agent has no gateway")
    return number


def token() -> str:
    """The agent's own token. Raises TargetMissing."""
    if not (value := environment().get("AGENTBOX_TOKEN", "")):
        raise TargetMissing("this agent has no token")
    return value


def proxy(
    target: str, *, method: str = "CONNECT", bearer: str | None = None, head: str = ""
) -> str:
    """The status of the forward proxy, or an errno. `bearer`: "" sends none, None the agent's own
    token.
    """
    credential = token() if bearer is None else bearer
    user = base64.b64encode(f"agent:{credential}".encode()).decode()
    login = f"Proxy-Authorization: Basic {user}\r\n" if credential else ""
    host = target.split("://")[-1].partition("/")[0]
    return status(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{login}{head}\r\n".encode())


def post(
    path: str, body: bytes, *, bearer: str | None = None, method: str = "POST", head: str = ""
) -> str:
    """The status of an application behind the gateway for a JSON body."""
    credential = token() if bearer is None else bearer
    login = f"Authorization: Bearer {credential}\r\n" if credential else ""
    first = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port()}\r\n{login}"
        "Content-Type: application/json\r\n"
    )
    return status(
        f"{first}{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
    )


@contextmanager
def keep_connection() -> Iterator[Callable[[str, bytes, str], str]]:
    """Posts JSON over one connection: path, body and bearer token to the status, `closed` once it
    is closed.
    """
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
    connection.auto_open = 0  # never reconnects
    try:
        yield send
    finally:
        connection.close()


def status(request: bytes) -> str:
    """The status code of the answer; `closed` if there was none."""
    answer = exchange(request).split(None, 2)
    return answer[1].decode("ascii", "replace") if len(answer) > 1 else "closed"


def exchange(request: bytes, *, read_all: bool = False) -> bytes:
    """The answer, up to 64 KiB: to the end of a head with status 200, or all if `read_all`. An
    errno is returned as the second word of a line. Raises TargetMissing if nothing listens.
    """
    response = b""
    try:
        with socket.create_connection(("127.0.0.1", port()), timeout=_SECONDS) as sock:
            sock.sendall(request)
            while len(response) < _MAX_BYTES and (chunk := sock.recv(_MAX_BYTES)):
                response += chunk
                if not read_all and b"\r\n\r\n" in response and b"200" in response[:16]:
                    break  # a tunnel stays open; its status is enough
    except ConnectionRefusedError:
        raise TargetMissing("the gateway does not listen") from None
    except OSError as error:
        return response or f"- {errno_name(error.errno)}".encode()
    return response


def providers(facts: TargetInfo) -> tuple[str, ...]:
    """Names of the model providers of this box. Raises TargetMissing if there are none."""
    if not facts.providers:
        raise TargetMissing("off: no provider is enabled")
    return facts.providers
