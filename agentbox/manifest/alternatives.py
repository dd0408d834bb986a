"""Alternative values for a key, from its schema: used by `config show --resolved` and tests."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass, replace
from typing import Any, Final, TypeVar

from agentbox.manifest.declarations.key_path import split_names
from agentbox.manifest.keys import generic_path, keys
from agentbox.manifest.model import convert
from agentbox.manifest.schema.examples import EXAMPLES
from agentbox.manifest.schema.generator import resolve_reference, schema_at

T = TypeVar("T")

_SPECIAL: Final[Mapping[str, Any]] = {
    "adapters.beads.schema": "other",
    "adapters.memory.schema": "other",
    "desktop.resolution": "1280x720",
    "image.suite": "bookworm",
    "resources.stop_seconds": 60,
    "security.exceptions.desktop.inherits": [],
}
"""Values of keys with their own pattern, one that gives all programs enough time, and one without a
cycle.
"""
_SECOND: Final[Mapping[str, Any]] = {
    "command_line": ["bash"],
    "env": "OTHER_NAME",
    "ip": "127.0.0.2",
    "money": "3.75",
    "money_or_none": "3.75",
    "name": "other",
    "package": "htop",
    "path": "/other",
    "port": 9797,
    "size": "768MiB",
}


def alternative_values(path: str, current: Any) -> Iterator[Any]:
    """Valid values for a real key path that differ from the current one, as plain data."""
    schema = schema_at(path)
    if schema is None:
        raise KeyError(path)
    candidates = [_SPECIAL[path]] if path in _SPECIAL else _candidates(schema)
    return (value for value in candidates if value != current)


def with_value(record: T, path: str, value: Any) -> T:
    """A copy of the model, or of a table, with plain data set at one real key path."""
    new_record: T = _replace_at(
        record, split_names(path), convert(keys()[generic_path(path)].hint, value)
    )
    return new_record


def _replace_at(record: Any, names: list[str], value: Any) -> Any:
    name, *rest = names
    current = getattr(record, name) if is_dataclass(record) else record[name]
    new = _replace_at(current, rest, value) if rest else value
    if is_dataclass(record) and not isinstance(record, type):
        return replace(record, **{name: new})
    return {**record, name: new}


def _candidates(schema: Mapping[str, Any]) -> list[Any]:
    title = str(schema.get("title", ""))
    if title in EXAMPLES:
        (example,) = tomllib.loads(f"x = {EXAMPLES[title][1]}").values()
        return [_SECOND.get(title, example), example, ""]
    if "enum" in schema:
        return list(schema["enum"])
    if schema["type"] == "boolean":
        return [True, False]
    if "minimum" in schema:
        return [schema["minimum"], schema["maximum"]]
    if schema["type"] == "array":
        return [[_item(resolve_reference(schema["items"]))], []]
    return ["", "ten letters and more"]


def _item(schema: Mapping[str, Any]) -> Any:
    if schema.get("type") == "object":
        return {
            name: _item(resolve_reference(schema["properties"][name]))
            for name in schema["required"]
        }
    return _candidates(schema)[0]
