"""The agent beside the attacker: it has a secret in its memory, its environment and its folder, and holds still."""

import ctypes
import json
import os
import secrets
import signal
import socket
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from agentbox.attack.line import Neighbour

_SECRET = 32


def hold_still() -> None:
    """Prints where it is, as JSON, and waits for its end."""
    held = ctypes.create_string_buffer(secrets.token_bytes(_SECRET), _SECRET)
    home = Path(tempfile.gettempdir())
    (home / "secret").write_bytes(held.raw)
    server = _server()
    told = Neighbour(
        pid=os.getpid(), home=str(home), address=ctypes.addressof(held), length=_SECRET,
        port=server.getsockname()[1] if server else 0,
    )  # fmt: skip
    print(json.dumps(asdict(told)), flush=True)
    signal.pause()


def _server() -> socket.socket | None:
    """On loopback; None where agents may open none."""
    with suppress(OSError):
        return socket.create_server(("127.0.0.1", 0))
    return None
