"""Calls of the agent API as JSON-RPC, for the attacks and the victim."""

import json
from typing import Any

from agentbox.sandbox.attacks.case import TargetMissing
from agentbox.sandbox.attacks.gateway_client import exchange, port, post, token


def require_agent_api() -> None:
    """Raises TargetMissing if this box has no agent API, or it cannot be reached."""
    reply = post("/rpc", rpc_message("hello"))
    if reply in ("404", "503") or not reply.isdecimal():
        raise TargetMissing(f"this box has no agent API: {reply}")


def rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The complete answer; empty if there was none."""
    return send_rpc(rpc_message(method, params))


def send_rpc(body: bytes, head: str = "") -> dict[str, Any]:
    """The answer to a body; `head`: further header lines. Empty if there was none."""
    first = (
        f"POST /rpc HTTP/1.1\r\nHost: 127.0.0.1:{port()}\r\n"
        f"Authorization: Bearer {token()}\r\nConnection: close\r\n"
    )
    response = exchange(
        f"{first}{head}Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body,
        read_all=True,
    )
    text = response.partition(b"\r\n\r\n")[2]
    try:
        answer = json.loads(text)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def rpc_message(method: str, params: dict[str, Any] | None = None) -> bytes:
    """A JSON-RPC request."""
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params else {})}
    ).encode()
