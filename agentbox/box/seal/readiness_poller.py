"""Polls programs that cannot notify: their port or URL, first 10 ms apart, then up to 50 ms."""

import socket
from urllib.parse import urlsplit

from agentbox.plan.model import Program

_FIRST, _LONGEST, _FACTOR = 0.01, 0.05, 1.5  # seconds
_TRY_SECONDS = 0.2
_NOT_POLLED = 3600.0


class ReadinessPoller:
    """Counts the attempts for each program."""

    def __init__(self) -> None:
        self._pauses: dict[str, float] = {}

    def pause(self, program: Program) -> float:
        """Seconds until the next attempt for this program; an hour for programs that are not
        polled.
        """
        return (
            self._pauses.get(program.name, _FIRST)
            if program.ready.by in ("tcp", "http")
            else _NOT_POLLED
        )

    def is_ready(self, program: Program) -> bool:
        """Tries once, and increases the pause before the next attempt."""
        self._pauses[program.name] = min(self._pauses.get(program.name, _FIRST) * _FACTOR, _LONGEST)
        if program.ready.by == "http":
            return http_ok(program.ready.target)
        host, _, port = program.ready.target.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=_TRY_SECONDS).close()
        except OSError:
            return False
        return True


def http_ok(url: str, seconds: float = _TRY_SECONDS) -> bool:
    """True when a GET returns a 2xx status."""
    from http.client import HTTPConnection, HTTPException

    url_parts = urlsplit(url)
    connection = HTTPConnection(url_parts.hostname or "", url_parts.port, timeout=seconds)
    try:
        connection.request("GET", url_parts.path or "/")
        return 200 <= connection.getresponse().status < 300
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
