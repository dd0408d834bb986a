"""What a server may answer to a call: bounded, and as its pinned output schema says."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from agentbox.core.slot_errors import McpResult

MAX_RESULT: Final = 7 << 20  # bytes, whatever the manifest says: one message between programs


def check_result(
    server: str,
    definition: Mapping[str, Any],
    result: Mapping[str, Any],
    max_result: int,
) -> bytes:
    """The result as JSON. Raises McpResult for one of more than `max_result` bytes, and for
    structured content that contradicts the output schema; errors of a tool need not match it.
    """
    tool = definition["name"]
    text = json.dumps(result, separators=(",", ":")).encode()
    if len(text) > min(max_result, MAX_RESULT):
        raise McpResult(
            f"cannot return the result of {tool}: it has {len(text)} bytes, and "
            f"mcp.servers.{server}.max_result is {max_result}",
            hint="ask the tool for less, or raise max_result in agentbox.toml",
            server=server,
            tool=tool,
        )
    schema = definition.get("outputSchema")
    if not schema or result.get("isError"):
        return text
    if reason := _difference(schema, result.get("structuredContent")):
        raise McpResult(
            f"cannot return the result of {tool}: {reason}",
            hint="the server does not do what its definition says",
            server=server,
            tool=tool,
        )
    return text


def _difference(schema: dict[str, Any], content: Any) -> str:
    """How the content differs from the schema; "" if it matches."""
    if content is None:
        return "it has an output schema, and the result has no structured content"
    from jsonschema import SchemaError  # few tools have an output schema
    from referencing.exceptions import Unresolvable

    try:
        error = next(_validator(json.dumps(schema)).iter_errors(content), None)
    except SchemaError:
        return "its output schema is not valid"
    except (Unresolvable, RecursionError):
        return "its output schema cannot be resolved"
    if error is None:
        return ""
    return f"its structured content does not match at /{'/'.join(map(str, error.absolute_path))}"


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    """Of a schema as JSON: to check it takes longer than to apply it. References are resolved
    within it only. Raises SchemaError."""
    from jsonschema.validators import validator_for
    from referencing import Registry

    document = json.loads(schema)
    kind = validator_for(document)
    kind.check_schema(document)
    return kind(document, registry=Registry())
