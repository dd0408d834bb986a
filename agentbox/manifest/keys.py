"""The model as a flat table of keys: type, default, apply class. `*` stands for a map entry."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from agentbox.manifest.declarations.key import Apply
from agentbox.manifest.declarations.key_path import quoted, split_names
from agentbox.manifest.declarations.specs import KeySpec, key_specs, manifest_spec
from agentbox.manifest.load import Manifest
from agentbox.manifest.model import plain

_OPTIONAL = "network."  # a table that most boxes have nothing in


@cache
def keys() -> Mapping[str, KeySpec]:
    """Every key of the model by path, in the order of the model."""
    return {spec.path: spec for spec in key_specs(manifest_spec())}


def apply_classes() -> dict[str, Apply]:
    """Apply class by key path; map entries are `security.exceptions.*.reason`."""
    return {path: spec.apply for path, spec in keys().items()}


def apply_class(path: str) -> Apply:
    """The apply class of a real key path. Raises KeyError if it does not exist."""
    return keys()[generic_path(path)].apply


@cache
def generic_path(path: str) -> str:
    """Replaces map entries in a real key path by `*`."""
    parts = split_names(path)
    for prefix in map_paths():
        prefix_parts = prefix.split(".")
        if parts[: len(prefix_parts)] == prefix_parts and len(parts) > len(prefix_parts):
            parts[len(prefix_parts)] = "*"
    return ".".join(parts)


@cache
def map_paths() -> tuple[str, ...]:
    """The tables whose keys are entry names, each after the one that contains it."""
    return tuple(
        dict.fromkeys(
            path[: match.start()] for path in keys() for match in re.finditer(r"\.\*", path)
        )
    )


def significant_values(manifest: Manifest) -> dict[str, Any]:
    """Effective values without keys of map entries and of `[network]` that have their default:
    adding an agent changes its explicit settings only, and most boxes need no proxy. The presence
    of a security exception is a change, so all its keys are included.
    """
    values = effective_values(manifest)
    return {
        path: value for path, value in values.items() if not _is_insignificant(path, value, values)
    }


def _is_insignificant(path: str, value: Any, values: Mapping[str, Any]) -> bool:
    generic_key = generic_path(path)
    is_optional = generic_key != path or path.startswith(_OPTIONAL)
    spec = keys()[generic_key] if is_optional else None
    if spec is None or spec.required or path.startswith("security."):
        return False
    return bool(value == (values[spec.inherits] if spec.inherits else spec.default))


def effective_values(manifest: Manifest) -> dict[str, Any]:
    """All keys with their values, including defaults, as plain data. Each written map entry has its
    own paths.
    """
    return {path: plain(value) for path, value in flatten(manifest.usable)}


def flatten(record: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All key paths of a model with their values."""
    for item in fields(record):
        value, path = getattr(record, item.name), f"{prefix}{item.name}"
        if is_dataclass(value):
            yield from flatten(value, f"{path}.")
        elif isinstance(value, Mapping):
            for name, entry in value.items():
                yield from flatten(entry, f"{path}.{quoted(name)}.")
        else:
            yield path, value
