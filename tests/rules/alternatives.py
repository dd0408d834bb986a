"""Another value for a key of the manifest, made from its schema: for tests that change every key once."""

import tomllib
from typing import Any

from agentbox.manifest.bundle import resolved, schema_at
from agentbox.manifest.examples import EXAMPLES

_OWN: dict[str, Any] = {
    "image.suite": "forky",
    "image.extra_packages": ["htop"],
    "adapters.beads.schema": "other",
    "adapters.memory.schema": "other",
    "desktop.resolution": "1280x720",
    "observability.metrics_port": 9797,
    "resources.stop_seconds": 60,
    "security.exceptions.desktop.seccomp": "",
}
_SECOND: dict[str, Any] = {
    "command_line": ["x"],
    "size": "768MiB",
    "port": 9797,
    "env": "OTHER_NAME",
    "name": "other",
    "ip": "127.0.0.2",
    "path": "/other",
}


def another(path: str, present: Any) -> Any:
    """A value that the schema takes there and that differs from the present one."""
    if path in _OWN:
        return _OWN[path]
    schema = schema_at(path)
    assert schema is not None, path
    return next(value for value in candidates(schema) if value != present)


def candidates(schema: dict[str, Any]) -> list[Any]:
    """At least two values of a schema."""
    if schema.get("title") in EXAMPLES:
        (example,) = tomllib.loads(f"x = {EXAMPLES[schema['title']][1]}").values()
        return [example, _SECOND.get(schema["title"], "")]
    if "enum" in schema:
        return list(schema["enum"])
    if schema["type"] == "boolean":
        return [True, False]
    if "minimum" in schema:
        return [schema["minimum"], schema["maximum"]]
    if schema["type"] == "array":
        return [[_item(resolved(schema["items"]))], [] if "minItems" not in schema else ["x"]]
    return ["ten letters and more", ""]


def _item(schema: dict[str, Any]) -> Any:
    if schema.get("type") == "object":
        return {name: _item(resolved(schema["properties"][name])) for name in schema["required"]}
    return candidates(schema)[0]
