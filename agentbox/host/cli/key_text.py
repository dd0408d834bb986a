"""Type, default and condition of a manifest key as text."""

from collections.abc import Iterable, Mapping
from typing import Any

from agentbox.manifest.declarations.specs import KeyCondition, KeySpec
from agentbox.manifest.schema.generator import resolve_reference
from agentbox.manifest.toml_text import format_toml


def default_text(spec: KeySpec) -> str:
    """Return the default in TOML; `required`, or the inherited key."""
    if spec.required:
        return "required"
    return f"as `{spec.inherits}`" if spec.inherits else f"`{format_toml(spec.default)}`"


def type_text(schema: Mapping[str, Any]) -> str:
    """Return a type as text: `size`, `integer 64 to 65536`, `one of "a", "b"`."""
    if schema.get("title"):
        return str(schema["title"])
    if "enum" in schema:
        return f"one of {', '.join(map(format_toml, schema['enum']))}"
    if "const" in schema:
        return format_toml(schema["const"])
    if "minimum" in schema:
        return f"{schema['type']} {schema['minimum']} to {schema['maximum']}"
    if schema.get("type") == "array":
        return f"list of {_items(resolve_reference(schema['items']))}"
    return f"text `{schema['pattern']}`" if "pattern" in schema else str(schema["type"])


def _items(schema: Mapping[str, Any]) -> str:
    if schema.get("type") != "object":
        return type_text(schema)
    fields = (
        f"{name}{'' if name in schema.get('required', ()) else '?'}: "
        f"{type_text(resolve_reference(item))}"
        for name, item in schema["properties"].items()
    )
    return f"{{{', '.join(fields)}}}"


def when_text(active: Iterable[KeyCondition]) -> str:
    """Return the condition under which a key is read; "" if there is none."""
    return " and ".join(_condition(item) for item in active)


def _condition(item: KeyCondition) -> str:
    values = " or ".join(map(format_toml, item.values)) or "a value that does not exist"
    return f"`{item.key}` is {'not ' if item.negated else ''}{values}"
