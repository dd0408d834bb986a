"""Effective manifest values for the plan: plain data, sizes in bytes."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from agentbox.manifest.declarations.key_path import quoted
from agentbox.manifest.types import Size


def sizes_to_bytes(value: Any) -> Any:
    """Converts a record of the model to dicts, lists and scalars; `"4GiB"` becomes 4294967296."""
    if is_dataclass(value):
        return {item.name: sizes_to_bytes(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {name: sizes_to_bytes(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [sizes_to_bytes(item) for item in value]
    return int(value) if isinstance(value, Size) else value


def flatten_keys(value: Any, prefix: str = "") -> dict[str, Any]:
    """Flattens it to one table of key paths. Map entries have their own paths; a list is
    a value.
    """
    if not isinstance(value, Mapping):
        return {prefix: value}
    result: dict[str, Any] = {}
    for name, item in value.items():
        result |= flatten_keys(item, f"{prefix}.{quoted(name)}" if prefix else name)
    return result
