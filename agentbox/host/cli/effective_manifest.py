"""A manifest with all defaults as TOML, and a summary of what it enables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentbox.host.cli.resolved_keys import ResolvedKey
from agentbox.manifest.declarations.key_path import to_text
from agentbox.manifest.features.loader import enabled_features
from agentbox.manifest.features.model import Feature
from agentbox.manifest.features.ports import port_table
from agentbox.manifest.keys import effective_values
from agentbox.manifest.load import Manifest
from agentbox.manifest.model import plain
from agentbox.manifest.tables.slots import SLOTS, slot_class
from agentbox.manifest.toml_text import format_toml


def effective_tables(manifest: Manifest) -> dict[str, Any]:
    """Every key with its effective value, nested; itself an equivalent manifest."""
    return _drop_unused_alternatives(plain(manifest.usable))


def _drop_unused_alternatives(table: Mapping[str, Any]) -> dict[str, Any]:
    """Drops the unused member of each `_env` and `_file` pair: a manifest may set only one."""
    remaining = {
        name: _drop_unused_alternatives(value) if isinstance(value, dict) else value
        for name, value in table.items()
    }
    for name in [
        name for name in remaining if name.endswith("_file") and f"{name[:-5]}_env" in remaining
    ]:
        del remaining[f"{name[:-5]}_env" if remaining[name] else name]
    return remaining


def commented_toml(manifest: Manifest, notes: Mapping[str, ResolvedKey]) -> str:
    """The effective manifest as TOML, each key followed by its note."""
    return "\n".join(_toml_lines(effective_tables(manifest), "", notes))


def _toml_lines(
    table: Mapping[str, Any], path: str, notes: Mapping[str, ResolvedKey]
) -> Iterator[str]:
    subtables = {name: value for name, value in table.items() if isinstance(value, dict)}
    if path and (len(subtables) < len(table) or not table):
        yield f"\n[{path}]"
    for name, value in table.items():
        if name not in subtables:
            yield f"{name} = {format_toml(value)}  # {notes[f'{path}.{name}']}"
    for name, value in subtables.items():
        yield from _toml_lines(value, f"{path}.{to_text((name,))}".lstrip("."), notes)


def enabled_summary(manifest: Manifest, features: Mapping[str, Feature]) -> dict[str, list[str]]:
    """Features, listeners, slots and number of keys."""
    model = manifest.usable
    enabled_names = enabled_features(manifest, features)
    return {
        "features": list(enabled_names),
        "listeners": [
            f"{row.port} {row.owner}" for row in port_table(model, features, enabled_names)
        ],
        "slots": [f"{slot} {slot_class(getattr(model.adapters, slot).use)}" for slot in SLOTS],
        "keys": [f"{len(manifest.positions)} written, {len(effective_values(manifest))} in all"],
    }
