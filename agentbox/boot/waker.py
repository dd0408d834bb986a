"""supervisord sleeps one full tick (1 s) before its first spawn; a connection to its socket ends the sleep.

Seen in supervisor 4.3, `Supervisor.runforever`: `poller.poll(timeout)` comes before `group.transition()`.
"""

import os
import socket
import time

from agentbox.settings import Paths

_DEADLINE = 10.0  # seconds; supervisord listens about 0.1 s after exec
_PAUSE = 0.002


def fork_waker(paths: Paths) -> None:
    """Forks a child that waits for the socket, connects once and ends. supervisord, as its parent, reaps it."""
    if os.fork() == 0:
        try:
            _connect(str(paths.supervisor_socket))
        finally:
            os._exit(0)


def _connect(path: str) -> None:
    end = time.monotonic() + _DEADLINE
    while time.monotonic() < end:
        with socket.socket(socket.AF_UNIX) as link:
            if link.connect_ex(path) == 0:
                return
        time.sleep(_PAUSE)
