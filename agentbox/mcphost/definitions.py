"""Definitions of tools: what of them is pinned and shown to agents, and which cannot be offered."""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from agentbox.core.canonical import digest
from agentbox.core.jcs import jcs

MEMBERS: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""The members of a definition that are pinned, and that an agent is shown."""

MAX_NAME: Final = 64  # characters of a name that an agent is shown, as most models accept
MAX_SCHEMA_BYTES: Final = 64 << 10  # of one definition
MAX_SCHEMA_NODES: Final = 2000
_NAME: Final = re.compile("[A-Za-z0-9_-]+")
_UNBOUNDED: Final = (
    *("pattern", "patternProperties", "uniqueItems"),
    *("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"),
)
"""Keywords of an output schema by which a result could keep its check busy without end."""


def definition_of(tool: Mapping[str, Any]) -> dict[str, Any]:
    """What is pinned of a tool as the server sent it."""
    return {name: tool[name] for name in MEMBERS if tool.get(name) is not None and tool[name] != {}}


def definition_digest(definition: Mapping[str, Any]) -> str:
    """`sha256:<hex>` of its RFC 8785 form. Raises ValueError if it has none."""
    return digest(jcs(definition))


def offered_name(server: str, tool: str) -> str:
    """The name under which `/mcp` offers a tool. A server's name has no underscore, so that the
    first two separate them."""
    return f"{server}__{tool}"


def find_problem(server: str, definition: Mapping[str, Any], max_description: int) -> str:
    """Why a tool cannot be offered; "" if it can. `max_description` in bytes."""
    name = definition["name"]
    if not _NAME.fullmatch(name) or len(offered_name(server, name)) > MAX_NAME:
        return f"its name with that of the server is not 1 to {MAX_NAME} of A-Z a-z 0-9 _ -"
    size = len(str(definition.get("description", "")).encode("utf-8", "replace"))
    if size > max_description:
        return f"its description has {size} bytes, more than mcp.description"
    try:
        if len(jcs(definition)) > MAX_SCHEMA_BYTES:
            return f"its definition has more than {MAX_SCHEMA_BYTES} bytes"
    except (ValueError, RecursionError) as error:
        return f"its definition has no canonical form: {error}"
    if definition.get("inputSchema", {}).get("type") != "object":
        return "its input schema is not that of an object"
    return _schema_problem(definition.get("outputSchema", {}))


def _schema_problem(schema: Mapping[str, Any]) -> str:
    nodes = 0
    for node in _expand(schema, schema):
        nodes += 1
        if nodes > MAX_SCHEMA_NODES:
            return f"its output schema has more than {MAX_SCHEMA_NODES} parts, or refers to itself"
        if not isinstance(node, dict):
            continue
        reference = node.get("$ref")
        if isinstance(reference, str) and not reference.startswith("#"):
            return "its output schema refers to another document"
        if found := [keyword for keyword in _UNBOUNDED if keyword in node]:
            return f"its output schema uses {found[0]}"
    return ""


def _expand(root: Any, schema: Any) -> Iterator[Any]:
    """All parts of a schema, with references inside it followed: without end if it is recursive.
    Breadth first, so that depth costs nothing."""
    pending = deque([schema])
    while pending:
        value = pending.popleft()
        yield value
        if isinstance(value, dict):
            pending.extend(value.values())
            if isinstance(reference := value.get("$ref"), str):
                pending.append(_resolve(root, reference))
        elif isinstance(value, list):
            pending.extend(value)


def _resolve(root: Any, reference: str) -> Any:
    """The part that a JSON pointer in a fragment names; None if there is none, as for an anchor."""
    value = root
    for word in reference.removeprefix("#").split("/")[1:]:
        name = unquote(word).replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            value = value[int(name)] if name.isdecimal() and int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value
