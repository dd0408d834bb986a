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

from agentbox.sandbox.attacks.door import message, rpc
from agentbox.sandbox.attacks.gateway import post
from agentbox.sandbox.attacks.line import NAME, NOTE, Absent, Neighbour

_SECRET = 32


def hold_still() -> None:
    """Prints where it is, as JSON, and waits for its end."""
    held = ctypes.create_string_buffer(secrets.token_bytes(_SECRET), _SECRET)
    home = Path(tempfile.gettempdir())
    (home / "secret").write_bytes(held.raw)
    server = _server()
    told = Neighbour(
        pid=os.getpid(), home=str(home), address=ctypes.addressof(held), length=_SECRET,
        port=server.getsockname()[1] if server else 0, **_left(),
    )  # fmt: skip
    print(json.dumps(asdict(told)), flush=True)
    signal.pause()


def _left() -> dict[str, str]:
    """A note in memory, pods, a bead and the journal, each of which is this run's own."""
    try:
        post("/rpc", message("hello"))
        rpc("memory.store", {"key": "note", "value": NOTE, "text": f"a fact about cheese {NOTE}"})
        rpc("pod.write", {"path": "notes/note", "content": NOTE})
        rpc("event.append", {"type": "note.left", "data": {"note": NOTE}})
        made = rpc("bead.create", {"title": NOTE, "tags": ["left", f"for:{NAME}"], "dedup_key": "left"})
        return {"state": str(rpc("hello", {})["result"]["state"]), "bead": str(made["result"]["id"])}
    except (Absent, KeyError):
        return {}


def _server() -> socket.socket | None:
    """On loopback; None where agents may open none."""
    with suppress(OSError):
        return socket.create_server(("127.0.0.1", 0))
    return None
