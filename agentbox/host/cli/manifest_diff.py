"""Compares two manifests by their effective values, with required actions and effects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.manifest_effects import ManifestEffects, compare_effects
from agentbox.host.cli.output import pluralize
from agentbox.manifest.declarations.key import APPLY_ORDER, Apply
from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.features.model import Feature
from agentbox.manifest.keys import apply_class, effective_values, significant_values
from agentbox.manifest.load import Manifest, load
from agentbox.manifest.toml_text import format_toml

_COMMANDS: dict[Apply, str] = {
    "live": "agentbox up",
    "boot": "agentbox restart",
    "recreate": "agentbox up",
    "rebuild": "agentbox up",
}
_RULE_BY_NEED = {"required": "E201", "advised": "W021"}
"""Need of a feature -> the rule about its missing exception."""


@dataclass(frozen=True)
class KeyChange:
    """One changed key; None on the side that lacks it (entries of maps)."""

    key: str
    apply: Apply
    old: Any
    new: Any
    brings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ManifestDiff:
    """Changes sorted by apply class, then by key."""

    changes: tuple[KeyChange, ...]
    effects: ManifestEffects

    @property
    def required_apply(self) -> Apply | None:
        """The highest apply class of the changes."""
        return max((change.apply for change in self.changes), key=APPLY_ORDER.index, default=None)


def compare(old: Path, new: Path) -> ManifestDiff:
    """Compares two files. Raises AgentboxError (exit 2) when one is unreadable or invalid."""
    before, after = _load_usable(old), _load_usable(new)
    features = load_features()
    feature_changes = _feature_changes(before, after, features)
    old_values, new_values = effective_values(before), effective_values(after)
    significant = [significant_values(manifest) for manifest in (before, after)]
    changes = [
        KeyChange(
            key,
            apply_class(key),
            old_values.get(key),
            new_values.get(key),
            tuple(feature_changes.get(key, ())),
        )
        for key in sorted({*significant[0], *significant[1]})
        if old_values.get(key) != new_values.get(key)
    ]
    ordered = sorted(changes, key=lambda change: (APPLY_ORDER.index(change.apply), change.key))
    return ManifestDiff(
        tuple(ordered), compare_effects(before, after, features) if changes else ManifestEffects(())
    )


def _load_usable(path: Path) -> Manifest:
    manifest = load(path)
    if manifest.effective is None:
        raise AgentboxError(
            f"cannot compare {path}: {manifest.findings[0].message}",
            f"Run `agentbox config validate {path}`.",
            exit_code=ExitCode.USAGE,
        )
    return manifest


def _feature_changes(
    before: Manifest, after: Manifest, features: Mapping[str, Feature]
) -> dict[str, list[str]]:
    """Gate key -> features that it turns on or off, and exceptions that they need."""
    enabled_before, enabled_after = (
        set(enabled_features(before, features)),
        set(enabled_features(after, features)),
    )
    changes: dict[str, list[str]] = {}
    for name in sorted(enabled_before ^ enabled_after):
        feature = features[name]
        if feature.gate is None:
            continue
        descriptions = changes.setdefault(_changed_gate(feature, before, after), [])
        descriptions.append(
            _format_feature(feature) if name in enabled_after else f"- feature {name}"
        )
        if name in enabled_after:
            descriptions += _missing_exceptions(feature, after)
    return changes


def _changed_gate(feature: Feature, before: Manifest, after: Manifest) -> str:
    """The changed one of the two keys that turn a feature on."""
    assert feature.gate is not None
    key, switch = feature.gate.key, feature.gate.when
    unchanged = effective_values(before)[key] == effective_values(after)[key]
    return switch if unchanged and switch else key


def _format_feature(feature: Feature) -> str:
    packages = len(feature.debian) + len(feature.npm) + len(feature.pypi)
    return (
        f"+ feature {feature.name}: {pluralize(packages, 'package')}, "
        f"{pluralize(len(feature.probes), 'probe')}"
    )


def _missing_exceptions(feature: Feature, manifest: Manifest) -> Iterator[str]:
    need = feature.exception
    if need is not None and need.key not in manifest.usable.security.exceptions:
        yield f"+ exception {need.key} needed ({_RULE_BY_NEED[need.need]})"


def print_json(difference: ManifestDiff) -> None:
    """Prints one JSON document."""
    document = {
        "changes": [asdict(change) for change in difference.changes],
        "effects": [asdict(row) for row in difference.effects.rows],
        "not_planned": difference.effects.planning_error,
        "needed": difference.required_apply,
    }
    print(json.dumps(document, indent=2, ensure_ascii=False))


def print_text(difference: ManifestDiff) -> None:
    """Prints a line per key, a line per effect and the required command."""
    if difference.required_apply is None:
        print("equal")
        return
    width = max(len(change.key) for change in difference.changes)
    for change in difference.changes:
        suffix = "".join(f"   {text}" for text in change.brings)
        print(
            f"{change.apply:<9} {change.key:<{width}}  {_format_value(change.old)} -> "
            f"{_format_value(change.new)}{suffix}"
        )
    for row in difference.effects.rows:
        print(f"  {row.area:<11} {row.sign} {row.name}{f'  {row.detail}' if row.detail else ''}")
    if difference.effects.planning_error:
        print(
            "  programs, ports, privileges and files not compared: "
            f"{difference.effects.planning_error}"
        )
    print(f"needed: {difference.required_apply}. Run `{_COMMANDS[difference.required_apply]}`.")


def _format_value(value: Any) -> str:
    return "absent" if value is None else format_toml(value)
