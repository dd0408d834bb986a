"""The Agent Client Protocol, version 1, as its published schema has it: the file below is the
schema v1 of the npm package @agentclientprotocol/sdk 2.4.0 (Apache-2.0), without its white space.

What the schema knows is checked; what it does not know, an update of another kind, a method of an
extension or a member `_meta`, passes as it is (https://agentclientprotocol.com/protocol/extensibility).
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator

from agentbox.core.errors import AgentboxError

VERSION: Final = 1
# Error codes of JSON-RPC 2.0, and those of the protocol (definition `ErrorCode`).
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
AUTH_REQUIRED, RESOURCE_NOT_FOUND, CANCELLED = -32000, -32002, -32800

Side = Literal["agent", "client"]  # who handles the method
Payload = Literal["params", "result"]
_NAMES: Final[Mapping[Payload, tuple[str, ...]]] = {
    "params": ("Request", "Notification"),
    "result": ("Response",),
}
_SCHEMA: Final = Path(__file__).parent / "schema" / "acp-v1.json"


class InvalidMessage(AgentboxError):
    """A message that the schema of the protocol refuses."""


@cache
def _document() -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    return document


@cache
def _definitions() -> Mapping[tuple[str, str, Payload], str]:
    """The name of each definition by side, method and payload."""
    found: dict[tuple[str, str, Payload], str] = {}
    for name, definition in _document()["$defs"].items():
        method = definition.get("x-method")
        if method is None:
            continue
        payload: Payload = "result" if name.endswith(_NAMES["result"]) else "params"
        found[definition["x-side"], method, payload] = name
    return found


@cache
def _validator(name: str) -> Validator:
    schema = {"$ref": f"#/$defs/{name}", "$defs": _document()["$defs"]}
    return Draft202012Validator(schema)


@cache
def _update_validators() -> Mapping[str, Validator]:
    """By kind: the schema of one alternative gives the better error, and is much faster."""
    definitions = _document()["$defs"]
    return {
        one["properties"]["sessionUpdate"]["const"]: Draft202012Validator(
            {**one, "$defs": definitions}
        )
        for one in definitions["SessionUpdate"]["oneOf"]
        if "const" in one.get("properties", {}).get("sessionUpdate", {})
    }


def is_known(side: Side, method: str) -> bool:
    """Whether the protocol has this method on that side."""
    return (side, method, "params") in _definitions()


def check(side: Side, method: str, payload: Payload, value: Any) -> None:
    """Nothing for methods that the protocol does not have. Raises InvalidMessage."""
    if method == "session/update" and payload == "params":
        _check_update(value)
        return
    name = _definitions().get((side, method, payload))
    if name is not None:
        _check(_validator(name), f"{method} {payload}", value)


def _check_update(params: Any) -> None:
    if not isinstance(params, Mapping) or not isinstance(params.get("sessionId"), str):
        raise InvalidMessage("session/update params: sessionId is missing")
    update = params.get("update")
    if not isinstance(update, Mapping) or not isinstance(update.get("sessionUpdate"), str):
        raise InvalidMessage("session/update params: update.sessionUpdate is missing")
    validator = _update_validators().get(update["sessionUpdate"])
    if validator is not None:
        _check(validator, f"session/update {update['sessionUpdate']}", update)


def _check(validator: Validator, name: str, value: Any) -> None:
    error = next(iter(validator.iter_errors(value)), None)
    if error is not None:
        where = "/".join(map(str, error.absolute_path))
        raise InvalidMessage(f"{name}: {error.message[:200]}" + (f" at {where}" if where else ""))
