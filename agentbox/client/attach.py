"""WebSockets to an agent's pipes: what both clients share."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
from websockets.exceptions import (
    ConnectionClosed,
    ConnectionClosedOK,
    InvalidStatus,
)

from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.client.transport import build_call, parse_error
from agentbox.core.errors import AgentboxError

MAX_MESSAGE = 1 << 20  # maximum bytes per message of the box
FIRST_PROBLEM_CODE = 4000  # from this close code on, a problem was sent before


def attach_url(base: str, agent_id: str, generation: int) -> str:
    """The WebSocket URL of an agent."""
    return socket_url(base, "attach_agent", {"id": agent_id}, {"generation": generation})


def socket_url(
    base: str,
    name: str,
    parameters: Mapping[str, str],
    query: Mapping[str, object] | None = None,
) -> str:
    """The WebSocket URL of an operation."""
    parts = urlsplit(base)
    path = build_call(name, parameters, query=query).url
    return parts._replace(scheme={"http": "ws", "https": "wss"}[parts.scheme]).geturl() + path


def connect_options(
    base: str, headers: Mapping[str, str], ssl: Any, timeout: float, proxy: str = ""
) -> dict[str, Any]:
    """Options of both connect functions: no proxy but the given one, no compression, bounded
    messages."""
    tls_options = {"ssl": ssl} if ssl is not None and base.startswith("https") else {}
    return {
        "additional_headers": dict(headers),
        "open_timeout": timeout,
        "close_timeout": 1,
        "compression": None,
        "proxy": proxy or None,
        "max_size": MAX_MESSAGE,
        "max_queue": 16,
        **tls_options,
    }


def to_client_error(url: str, error: Exception) -> AgentboxError:
    """The problem document of the response, or BoxUnreachable."""
    if isinstance(error, InvalidStatus):
        response = error.response
        return parse_error(
            httpx.Response(
                response.status_code,
                headers=list(response.headers.raw_items()),
                content=bytes(response.body or b""),
            )
        )
    return BoxUnreachable(url, str(error) or type(error).__name__)


class ReceivedProblems:
    """Problem documents received between the bytes."""

    def __init__(self, url: str) -> None:
        self._url, self._problem = url, None

    _problem: ApiError | None

    def add(self, text: str) -> None:
        problem = json.loads(text)
        self._problem = ApiError(int(problem.get("status", 500)), problem)

    def check(self) -> None:
        """Raises a received problem once; it concerns earlier input."""
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def check_end(self, error: ConnectionClosed) -> None:
        """Returns at the end of the agent's output. Raises ApiError or BoxUnreachable otherwise."""
        if isinstance(error, ConnectionClosedOK):
            return
        if error.rcvd is not None and error.rcvd.code >= FIRST_PROBLEM_CODE:
            self.check()
        raise BoxUnreachable(self._url, "the attached connection was closed") from error
