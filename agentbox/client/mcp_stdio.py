"""The command `agentbox-mcp`: the agent's MCP server on stdin and stdout, for clients that speak no
HTTP. `agentbox-mcp SERVER` offers the tools of one server alone, by their own names.

Each line is one JSON-RPC message, which is sent to `/mcp` with the token of AGENTBOX_TOKEN.
"""

import http.client
import json
import re
import sys
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from agentbox.client.agent_api import TOKEN, URL
from agentbox.core.paths import environment

USAGE: Final = 2
_NAME: Final = re.compile("[a-z][a-z0-9-]{0,31}")
_INTERNAL_ERROR: Final = -32603
_SECONDS: Final = 3700.0  # above every bound of a call


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 at the end of the input, 2 for wrong arguments or missing
    variables."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    url, token = environment().get(URL, ""), environment().get(TOKEN, "")
    if len(arguments) > 1 or not all(map(_NAME.fullmatch, arguments)) or not url or not token:
        sys.stderr.write(f"usage: agentbox-mcp [SERVER]\n\n{(__doc__ or '').strip()}\n")
        return USAGE
    path = "/".join(["/mcp", *arguments])
    for line in sys.stdin.buffer:
        if (answer := _answer(url, path, token, line.strip())) is not None:
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()
    return 0


def _answer(url: str, path: str, token: str, message: bytes) -> bytes | None:
    """The response to one message; None if it has none."""
    if not message:
        return None
    try:
        return _post(url, path, token, message)
    except (OSError, http.client.HTTPException) as error:
        return _error(message, f"cannot reach the box: {error or type(error).__name__}")


def _post(url: str, path: str, token: str, message: bytes) -> bytes | None:
    """On a connection of its own: calls may be minutes apart. Raises OSError, HTTPException."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port or 80, timeout=_SECONDS
    )
    try:
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            **_routing_headers(message),
        }
        connection.request("POST", path, message, headers)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    return body.replace(b"\n", b" ") or None


def _routing_headers(message: bytes) -> dict[str, str]:
    """Those of the revision without a handshake, whose requests name their version themselves."""
    document = _decode(message)
    params = document.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = (meta or {}).get("io.modelcontextprotocol/protocolVersion")
    if not isinstance(params, dict) or not isinstance(version, str):
        return {}
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": str(document.get("method"))}
    name = params.get("name", params.get("uri"))
    return {**headers, "Mcp-Name": name} if isinstance(name, str) and name.isascii() else headers


def _error(message: bytes, text: str) -> bytes | None:
    """An error response to a request; None for a notification."""
    document = _decode(message)
    if "id" not in document:
        return None
    error = {"code": _INTERNAL_ERROR, "message": text}
    return json.dumps({"jsonrpc": "2.0", "id": document["id"], "error": error}).encode()


def _decode(message: bytes) -> dict[str, Any]:
    """The message; empty if it is not a JSON object."""
    try:
        document = json.loads(message)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


if __name__ == "__main__":
    sys.exit(main())
