"""A manifest with every default written out, as TOML, and what it resolves to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentbox.host.cli.resolved import Resolved
from agentbox.manifest.features.loader import enabled
from agentbox.manifest.features.model import Feature
from agentbox.manifest.features.ports import port_table
from agentbox.manifest.features.slots import slot_class
from agentbox.manifest.keypath import to_text
from agentbox.manifest.keys import effective_values
from agentbox.manifest.load import Manifest
from agentbox.manifest.model import plain
from agentbox.manifest.tables.slots import SLOTS
from agentbox.manifest.toml_text import spell


def tables(manifest: Manifest) -> dict[str, Any]:
    """Every key with its effective value, nested as in a manifest; itself a manifest that means the same."""
    return _one_of_each_pair(plain(manifest.usable))


def _one_of_each_pair(table: Mapping[str, Any]) -> dict[str, Any]:
    """Without the member of each `_env` and `_file` pair that is not in use, since only one may be written."""
    kept = {name: _one_of_each_pair(value) if isinstance(value, dict) else value for name, value in table.items()}
    for name in [name for name in kept if name.endswith("_file") and f"{name[:-5]}_env" in kept]:
        del kept[f"{name[:-5]}_env" if kept[name] else name]
    return kept


def commented(manifest: Manifest, notes: Mapping[str, Resolved]) -> str:
    """The same as TOML text, each key with its note behind it."""
    return "\n".join(_lines(tables(manifest), "", notes))


def _lines(table: Mapping[str, Any], path: str, notes: Mapping[str, Resolved]) -> Iterator[str]:
    inner = {name: value for name, value in table.items() if isinstance(value, dict)}
    if path and (len(inner) < len(table) or not table):
        yield f"\n[{path}]"
    for name, value in table.items():
        if name not in inner:
            yield f"{name} = {spell(value)}  # {notes[f'{path}.{name}']}"
    for name, value in inner.items():
        yield from _lines(value, f"{path}.{to_text((name,))}".lstrip("."), notes)


def resolution(manifest: Manifest, features: Mapping[str, Feature]) -> dict[str, list[str]]:
    """What the manifest turns on."""
    model = manifest.usable
    on = enabled(manifest, features)
    return {
        "features": list(on),
        "listeners": [f"{row.port} {row.owner}" for row in port_table(model, features, on)],
        "slots": [f"{slot} {slot_class(getattr(model.adapters, slot).use)}" for slot in SLOTS],
        "keys": [f"{len(manifest.where)} written, {len(effective_values(manifest))} in all"],
    }
