"""Talking to the gateway as an agent does: the port and the token from the agent's own environment, bytes by hand."""

import base64
import http.client
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from agentbox.core.paths import environment
from agentbox.sandbox.attacks.attempts import name_of
from agentbox.sandbox.attacks.line import Absent, Facts

_SECONDS = 15.0
_LONGEST = 1 << 16


def port() -> int:
    """Where the gateway listens. Raises Absent for an agent that was told of none."""
    found = urlsplit(environment().get("AGENTBOX_URL", "")).port
    if not found:
        raise Absent("this agent was told of no gateway")
    return found


def token() -> str:
    """The agent's own. Raises Absent."""
    if not (found := environment().get("AGENTBOX_TOKEN", "")):
        raise Absent("this agent has no token")
    return found


def proxy(target: str, *, method: str = "CONNECT", bearer: str | None = None, head: str = "") -> str:
    """The status that the forward proxy answers, or an errno. `bearer` "" sends none, None the agent's own."""
    held = token() if bearer is None else bearer
    user = base64.b64encode(f"agent:{held}".encode()).decode()
    login = f"Proxy-Authorization: Basic {user}\r\n" if held else ""
    host = target.split("://")[-1].partition("/")[0]
    return status(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{login}{head}\r\n".encode())


def post(path: str, body: bytes, *, bearer: str | None = None, method: str = "POST", head: str = "") -> str:
    """The status that an application behind the gateway answers to JSON."""
    held = token() if bearer is None else bearer
    login = f"Authorization: Bearer {held}\r\n" if held else ""
    first = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port()}\r\n{login}Content-Type: application/json\r\n"
    return status(f"{first}{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)


@contextmanager
def kept() -> Iterator[Callable[[str, bytes, str], str]]:
    """Posts of JSON over one connection: path, body and bearer token to the status, `closed` once it is cut."""
    one = http.client.HTTPConnection("127.0.0.1", port(), timeout=_SECONDS)

    def ask(path: str, body: bytes, bearer: str) -> str:
        try:
            head = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
            one.request("POST", path, body, head)
            answer = one.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            return "closed"
        return str(answer.status)

    one.connect()
    one.auto_open = 0  # never another one
    try:
        yield ask
    finally:
        one.close()


def status(said: bytes) -> str:
    """The three digits of the answer to those bytes; `closed` where there was none."""
    answer = talk(said).split(None, 2)
    return answer[1].decode("ascii", "replace") if len(answer) > 1 else "closed"


def talk(said: bytes, *, whole: bool = False) -> bytes:
    """What comes back, up to 64 KiB: to the end of a head that says 200, or the `whole`. An errno is told as the second word
    of a line. Raises Absent when nothing listens."""
    heard = b""
    try:
        with socket.create_connection(("127.0.0.1", port()), timeout=_SECONDS) as one:
            one.sendall(said)
            while len(heard) < _LONGEST and (piece := one.recv(_LONGEST)):
                heard += piece
                if not whole and b"\r\n\r\n" in heard and b"200" in heard[:16]:
                    break  # a tunnel stays open: that it was made is all there is to know
    except ConnectionRefusedError:
        raise Absent("nothing listens where the gateway should be") from None
    except OSError as error:
        return heard or f"- {name_of(error.errno)}".encode()
    return heard


def providers(facts: Facts) -> tuple[str, ...]:
    """Names of the model providers that this box has. Raises Absent where there is none."""
    if not facts.providers:
        raise Absent("off: no provider is enabled")
    return facts.providers
