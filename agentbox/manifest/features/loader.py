"""Reads `config/features/`. An invalid file is an error, never skipped."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from agentbox.core.data_files import config_dir
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.manifest.features.model import Feature, FixedPort, Gate, SecurityExceptionNeed
from agentbox.manifest.load import Manifest
from agentbox.manifest.model import Model
from agentbox.manifest.types import Size

UNGATED: Final = ("build", "core")
"""Features without a gate."""


def features_dir() -> Path:
    """The directory `config/features`."""
    return config_dir() / "features"


def load_features(directory: Path | None = None) -> dict[str, Feature]:
    """All features by name, sorted. Raises AgentboxError (exit 2) naming an invalid file."""
    files = sorted((directory or features_dir()).glob("*.toml"))
    return {path.stem: _load(path) for path in files}


def enabled_features(manifest: Manifest, features: Mapping[str, Feature]) -> tuple[str, ...]:
    """The names of enabled features, sorted; always with `build` and `core`."""
    return tuple(
        sorted(name for name, feature in features.items() if is_enabled(manifest.usable, feature))
    )


def is_enabled(model: Model, feature: Feature) -> bool:
    """True if the feature has no gate, or if its gate key has one of the gate's values and its
    switch is on.
    """
    gate = feature.gate
    if gate is None:
        return True
    return _gate_value(model, gate.key) in gate.values and (
        not gate.when or value_at(model, gate.when) is True
    )


def value_at(model: Model, key: str) -> Any:
    """The effective value of an existing key path. Raises AttributeError (a bug) for another."""
    value: Any = model
    for name in key.split("."):
        value = getattr(value, name)
    return value


def _gate_value(model: Model, key: str) -> Any:
    """The value of a gate key; of a map whether it has an entry, enabled or not: that is live."""
    value = value_at(model, key)
    return bool(value) if isinstance(value, Mapping) else value


def _load(path: Path) -> Feature:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return _feature(path.stem, table)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AgentboxError(
            f"cannot use the feature file {path}: {error}",
            "Compare it with schema/feature.schema.json.",
            exit_code=ExitCode.USAGE,
        ) from error


def _feature(name: str, table: Mapping[str, Any]) -> Feature:
    if unknown := sorted(set(table) - {item.name for item in fields(Feature)} - {"name"}):
        raise ValueError(f"unknown key {unknown[0]}")
    if ("gate" in table) == (name in UNGATED):
        raise ValueError(f"every feature except {' and '.join(UNGATED)} needs a gate")
    return Feature(
        name=name, **{key: _READERS.get(key, _to_tuple)(value) for key, value in table.items()}
    )


def _to_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _gate(table: Mapping[str, Any]) -> Gate:
    value = table["value"]
    values = tuple(value) if isinstance(value, list) else (value,)
    return Gate(
        **{**{name: item for name, item in table.items() if name != "value"}, "values": values}
    )


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "gate": _gate,
    "links": lambda rows: tuple((path, target) for path, target in rows),
    "wrappers": lambda rows: tuple((path, target) for path, target in rows),
    "min_memory": Size,
    "unused_dependencies": lambda table: {
        package: tuple(names) for package, names in table.items()
    },
    "exception": lambda table: SecurityExceptionNeed(**table),
    "ports": lambda rows: tuple(FixedPort(**row) for row in rows),
}
