"""Client of supervisord over its Unix socket, with the credentials that Stage A made for this boot.

A request wakes supervisord, so that it reaps and starts programs immediately instead of up to 1 s
later.
"""

import socket
from base64 import b64encode
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any
from xml.parsers.expat import ExpatError
from xmlrpc import client as xmlrpc

from agentbox.box.supervision.secrets import SUPERVISOR_USER
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths

_TIMEOUT = 2.0  # seconds; supervisord answers in a few milliseconds
_SHUTDOWN_STATE = (
    6  # supervisor.xmlrpc.Faults.SHUTDOWN_STATE: every method answers this once shutdown began
)
_UNAVAILABLE = (
    OSError,
    HTTPException,
    xmlrpc.Error,
    ExpatError,
)  # ExpatError: it died while it sent a response


class SupervisorUnavailable(AgentboxError):
    """supervisord did not answer."""

    def __init__(self, reason: object) -> None:
        super().__init__(
            f"cannot ask supervisord: {reason}", "Is the box up? Its log says why it stopped."
        )


class ShuttingDown(AgentboxError):
    """supervisord is stopping its programs and answers no more requests."""

    def __init__(self) -> None:
        super().__init__(
            "cannot ask supervisord: it is shutting down", "Wait until the box has stopped."
        )


@dataclass(frozen=True)
class ProcessState:
    """One program. `state` is the name supervisord uses; `start` and `stop` are wall clock seconds,
    0 when never.
    """

    name: str
    state: str
    pid: int
    start: int
    stop: int
    exitstatus: int
    spawn_error: str = ""


class SupervisorClient:
    """Blocking; one connection a call. Raises SupervisorUnavailable or ShuttingDown."""

    def __init__(self, paths: Paths, timeout: float = _TIMEOUT) -> None:
        self._paths = paths
        self._timeout = timeout

    def states(self) -> dict[str, ProcessState]:
        """Every program by its name, without the name of its group."""
        rows = self._call("supervisor.getAllProcessInfo")
        return {row["name"]: _process(row) for row in rows}

    def state(self) -> str:
        """supervisord's own state: RUNNING, RESTARTING, SHUTDOWN or FATAL."""
        try:
            return str(self._call("supervisor.getState")["statename"])
        except ShuttingDown:
            return "SHUTDOWN"

    def stop(self, name: str, *, wait: bool = True) -> None:
        self._call("supervisor.stopProcess", self._full_name(name), wait)

    def start(self, name: str, *, wait: bool = True) -> None:
        self._call("supervisor.startProcess", self._full_name(name), wait)

    def restart(self, name: str) -> None:
        self.stop(name)
        self.start(name)

    def shutdown(self) -> None:
        """Stops every program, then supervisord."""
        self._call("supervisor.shutdown")

    def _full_name(self, name: str) -> str:
        rows = self._call("supervisor.getAllProcessInfo")
        return next((f"{row['group']}:{row['name']}" for row in rows if row["name"] == name), name)

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            with xmlrpc.ServerProxy(
                "http://localhost", transport=_Transport(self._paths, self._timeout)
            ) as proxy:
                return getattr(proxy, method)(*arguments)
        except xmlrpc.Fault as fault:
            if fault.faultCode == _SHUTDOWN_STATE:
                raise ShuttingDown from None
            raise SupervisorUnavailable(fault.faultString) from fault
        except _UNAVAILABLE as error:
            raise SupervisorUnavailable(error) from error


def _process(row: dict[str, Any]) -> ProcessState:
    return ProcessState(
        name=row["name"],
        state=row["statename"],
        pid=row["pid"],
        start=row["start"],
        stop=row["stop"],
        exitstatus=row["exitstatus"],
        spawn_error=row["spawnerr"],
    )


class _Transport(xmlrpc.Transport):
    """XML-RPC over a unix socket with basic authentication."""

    def __init__(self, paths: Paths, timeout: float) -> None:
        super().__init__()
        self._socket = str(paths.supervisor_socket)
        self._timeout = timeout
        token = paths.token("supervisor").read_text(encoding="ascii").strip()
        credentials = b64encode(f"{SUPERVISOR_USER}:{token}".encode()).decode()
        self._headers = [("Authorization", f"Basic {credentials}")]

    def make_connection(self, host: Any) -> HTTPConnection:
        return _UnixConnection(self._socket, self._timeout)


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
