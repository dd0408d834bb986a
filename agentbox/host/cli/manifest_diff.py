"""Two manifests compared by their effective values, what the change needs, and what it makes of everything else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.cli.effects import Effects, effects
from agentbox.host.cli.output import counted
from agentbox.manifest.features.loader import enabled, load_features
from agentbox.manifest.features.model import Feature
from agentbox.manifest.keys import apply_class, effective_values, telling_values
from agentbox.manifest.load import Manifest, load
from agentbox.manifest.toml_text import spell
from agentbox.manifest.types import APPLY_ORDER, Apply

_COMMANDS: dict[Apply, str] = {
    "live": "agentbox up",
    "boot": "agentbox restart",
    "recreate": "agentbox up",
    "rebuild": "agentbox up",
}
_NEED = {"required": "E201", "advised": "W021"}
"""The rule that speaks of a feature whose exception is not written, by the feature's need."""


@dataclass(frozen=True)
class Change:
    """One key. An entry of a map that is in one manifest only has None on the other side."""

    key: str
    apply: Apply
    old: Any
    new: Any
    brings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """Changes sorted by what they need, then by key."""

    changes: tuple[Change, ...]
    effects: Effects

    @property
    def needed(self) -> Apply | None:
        """The most that any of them needs."""
        return max((change.apply for change in self.changes), key=APPLY_ORDER.index, default=None)


def compare(old: Path, new: Path) -> Difference:
    """Raises AgentboxError (exit 2) when one cannot be read or does not fit the schema."""
    before, after = _usable(old), _usable(new)
    features = load_features()
    brings = _brings(before, after, features)
    left, right = effective_values(before), effective_values(after)
    told = [telling_values(manifest) for manifest in (before, after)]
    changes = [
        Change(key, apply_class(key), left.get(key), right.get(key), tuple(brings.get(key, ())))
        for key in sorted({*told[0], *told[1]})
        if left.get(key) != right.get(key)
    ]
    ordered = sorted(changes, key=lambda change: (APPLY_ORDER.index(change.apply), change.key))
    return Difference(tuple(ordered), effects(before, after, features) if changes else Effects(()))


def _usable(path: Path) -> Manifest:
    manifest = load(path)
    if manifest.effective is None:
        raise AgentboxError(
            f"cannot compare {path}: {manifest.findings[0].message}",
            f"Run `agentbox config validate {path}`.",
            exit_code=ExitCode.USAGE,
        )
    return manifest


def _brings(before: Manifest, after: Manifest, features: Mapping[str, Feature]) -> dict[str, list[str]]:
    """Gate -> the features that it turns on or off, and the exceptions that they then need."""
    was, now = set(enabled(before, features)), set(enabled(after, features))
    found: dict[str, list[str]] = {}
    for name in sorted(was ^ now):
        feature = features[name]
        if feature.gate is None:
            continue
        rows = found.setdefault(_changed_gate(feature, before, after), [])
        rows.append(_told(feature) if name in now else f"- feature {name}")
        if name in now:
            rows += _exception_missing(feature, after)
    return found


def _changed_gate(feature: Feature, before: Manifest, after: Manifest) -> str:
    """Of the two keys that turn a feature on the one that was changed."""
    assert feature.gate is not None
    key, switch = feature.gate.key, feature.gate.when
    same = effective_values(before)[key] == effective_values(after)[key]
    return switch if same and switch else key


def _told(feature: Feature) -> str:
    packages = len(feature.debian) + len(feature.npm) + len(feature.pypi)
    return f"+ feature {feature.name}: {counted(packages, 'package')}, {counted(len(feature.probes), 'probe')}"


def _exception_missing(feature: Feature, manifest: Manifest) -> Iterator[str]:
    need = feature.exception
    if need is not None and need.key not in manifest.usable.security.exceptions:
        yield f"+ exception {need.key} needed ({_NEED[need.need]})"


def print_json(difference: Difference) -> None:
    """One document."""
    document = {
        "changes": [asdict(change) for change in difference.changes],
        "effects": [asdict(row) for row in difference.effects.rows],
        "not_planned": difference.effects.why,
        "needed": difference.needed,
    }
    print(json.dumps(document, indent=2, ensure_ascii=False))


def print_text(difference: Difference) -> None:
    """A line a key, a line for what each change makes of anything else, then what is needed."""
    if difference.needed is None:
        print("equal")
        return
    width = max(len(change.key) for change in difference.changes)
    for change in difference.changes:
        brings = "".join(f"   {text}" for text in change.brings)
        print(f"{change.apply:<9} {change.key:<{width}}  {_side(change.old)} -> {_side(change.new)}{brings}")
    for row in difference.effects.rows:
        print(f"  {row.area:<11} {row.sign} {row.name}{f'  {row.detail}' if row.detail else ''}")
    if difference.effects.why:
        print(f"  programs, ports, privileges and files are not compared: {difference.effects.why}")
    print(f"needed: {difference.needed}. Run `{_COMMANDS[difference.needed]}`.")


def _side(value: Any) -> str:
    return "absent" if value is None else spell(value)
