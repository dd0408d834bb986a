"""The victim beside the attacker: has a secret in its memory, its environment and its directory,
and is idle.
"""

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

from agentbox.sandbox.attacks.case import ATTACKER_NAME, VICTIM_NOTE, TargetMissing, VictimAgent
from agentbox.sandbox.attacks.gateway_client import post
from agentbox.sandbox.attacks.rpc_client import rpc, rpc_message

_SECRET_BYTES = 32


def run() -> None:
    """Prints its data as JSON and waits to be ended."""
    secret = ctypes.create_string_buffer(secrets.token_bytes(_SECRET_BYTES), _SECRET_BYTES)
    home = Path(tempfile.gettempdir())
    (home / "secret").write_bytes(secret.raw)
    server = _server()
    victim = VictimAgent(
        pid=os.getpid(),
        home=str(home),
        address=ctypes.addressof(secret),
        length=_SECRET_BYTES,
        port=server.getsockname()[1] if server else 0,
        **_create_traces(),
    )
    print(json.dumps(asdict(victim)), flush=True)
    signal.pause()


def _create_traces() -> dict[str, str]:
    """Leaves a note in memory, pods, a bead and the journal, which belong to this run."""
    try:
        post("/rpc", rpc_message("hello"))
        rpc(
            "memory.store",
            {"key": "note", "value": VICTIM_NOTE, "text": f"a fact about cheese {VICTIM_NOTE}"},
        )
        rpc("pod.write", {"path": "notes/note", "content": VICTIM_NOTE})
        rpc("event.append", {"type": "note.left", "data": {"note": VICTIM_NOTE}})
        bead = rpc(
            "bead.create",
            {"title": VICTIM_NOTE, "tags": ["left", f"for:{ATTACKER_NAME}"], "dedup_key": "left"},
        )
        return {
            "state": str(rpc("hello", {})["result"]["state"]),
            "bead": str(bead["result"]["id"]),
        }
    except (TargetMissing, KeyError):
        return {}


def _server() -> socket.socket | None:
    """On loopback; None if agents may not listen."""
    with suppress(OSError):
        return socket.create_server(("127.0.0.1", 0))
    return None
