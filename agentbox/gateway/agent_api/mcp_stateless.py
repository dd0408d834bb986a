"""MCP revision 2026-07-28, which has no handshake and no session: version and capabilities of the
client are in `_meta` of each request, and headers repeat what proxies route by.

Source: modelcontextprotocol.io/specification/2026-07-28, basic and basic/transports.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from agentbox import __version__
from agentbox.gateway.agent_api.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    AgentApiError,
)
from agentbox.gateway.agent_api.server_tools import Turn

REVISION: Final = "2026-07-28"
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022
HTTP_STATUS: Final[Mapping[int, int]] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""The status of an error response; 200 for others."""
CACHED: Final[Mapping[str, Any]] = {"ttlMs": 60_000, "cacheScope": "private"}
"""Results that depend on the agent's rights, which may change: for this agent, for a minute."""
_VERSION, _CAPABILITIES, _SERVER = (
    f"io.modelcontextprotocol/{name}"
    for name in ("protocolVersion", "clientCapabilities", "serverInfo")
)
_HEADERS: Final = ("mcp-protocol-version", "mcp-method", "mcp-name")
_NAMED: Final[Mapping[str, str]] = {"tools/call": "name", "resources/read": "uri"}
"""The parameter that the header `Mcp-Name` repeats, by method."""
_BASE64_PREFIX, _BASE64_SUFFIX = "=?base64?", "?="


def has_envelope(message: Any) -> bool:
    """Whether a request names its protocol version itself."""
    return isinstance(message, dict) and _VERSION in _meta(message)


def check_envelope(
    message: Mapping[str, Any], headers: Mapping[str, str], supported: tuple[str, ...]
) -> None:
    """Raises AgentApiError for an envelope that is incomplete, contradicts the headers, or names a
    version that is not served.
    """
    meta = _meta(message)
    if missing := [name for name in (_VERSION, _CAPABILITIES) if name not in meta]:
        raise AgentApiError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    version = meta[_VERSION]
    _check_header(headers, "mcp-protocol-version", version)
    _check_header(headers, "mcp-method", message.get("method"))
    name = _NAMED.get(str(message.get("method")))
    if name and (value := message["params"].get(name)) is not None:
        _check_header(headers, "mcp-name", value)
    if version != REVISION:
        raise unsupported_version(version, supported)


def takes_forms(capabilities: Any) -> bool:
    """Whether a client with these capabilities takes questions of servers: forms, which it does not
    name if it declares elicitation alone."""
    elicitation = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(elicitation, dict) and ("form" in elicitation or not elicitation)


def read_turn(message: Mapping[str, Any]) -> Turn:
    """What a request to call a tool says of questions. Raises AgentApiError."""
    params = message["params"]
    state, answers = params.get("requestState", ""), params.get("inputResponses", {})
    if not isinstance(state, str) or not isinstance(answers, dict):
        raise AgentApiError(INVALID_PARAMS, "requestState is a string, inputResponses an object")
    return Turn(takes_forms(_meta(message).get(_CAPABILITIES)), state, answers)


def check_unique(headers: list[tuple[bytes, bytes]]) -> None:
    """Raises AgentApiError for a routing header that is sent twice: readers of the first and of the
    last would disagree.
    """
    names = [name.decode("latin-1").lower() for name, _ in headers]
    for name in _HEADERS:
        if names.count(name) > 1:
            raise AgentApiError(HEADER_MISMATCH, f"the header {name} is sent more than once")


def unsupported_version(requested: Any, supported: tuple[str, ...]) -> AgentApiError:
    """The error that tells a client which versions it may use."""
    return AgentApiError(
        UNSUPPORTED_VERSION,
        f"unsupported protocol version: use one of {', '.join(supported)}",
        supported=list(supported),
        requested=str(requested)[:64],
    )


def complete(result: Any) -> dict[str, Any]:
    """A result with the members that this revision requires of each."""
    server = {"name": "agentbox", "version": __version__}
    return {"resultType": "complete", "_meta": {_SERVER: server}, **result}


def _meta(message: Mapping[str, Any]) -> Mapping[str, Any]:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


def _check_header(headers: Mapping[str, str], name: str, value: Any) -> None:
    if _decode(headers.get(name, "")) != value:
        raise AgentApiError(
            HEADER_MISMATCH, f"the header {name} is not what the body of the request says"
        )


def _decode(text: str) -> str | None:
    """The value of a header; texts that a header cannot hold are sent as `=?base64?...?=`. None for
    one that is malformed, which equals nothing.
    """
    if not (text.startswith(_BASE64_PREFIX) and text.endswith(_BASE64_SUFFIX)):
        return text
    encoded = text[len(_BASE64_PREFIX) : -len(_BASE64_SUFFIX)]
    try:
        decoded = base64.b64decode(encoded, validate=True)
        canonical = base64.b64encode(decoded).decode() == encoded
        return decoded.decode() if canonical else None
    except (binascii.Error, UnicodeDecodeError):
        return None
