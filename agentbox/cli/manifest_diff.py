"""Two manifests compared by their effective values, and what the change needs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentbox.errors import AgentboxError, ExitCode
from agentbox.features import Feature, enabled, load_features
from agentbox.manifest import Apply, Manifest, apply_class, effective_values, load
from agentbox.manifest.spelling import spell
from agentbox.manifest.words import APPLY_ORDER

_COMMANDS: dict[Apply, str] = {
    "live": "agentbox up",
    "boot": "agentbox restart",
    "recreate": "agentbox up",
    "rebuild": "agentbox up",
}


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

    @property
    def needed(self) -> Apply | None:
        """The most that any of them needs."""
        return max((change.apply for change in self.changes), key=APPLY_ORDER.index, default=None)


def compare(old: Path, new: Path) -> Difference:
    """Raises AgentboxError (exit 2) when one cannot be read or does not fit the schema."""
    before, after = _usable(old), _usable(new)
    features = load_features()
    left, right = effective_values(before), effective_values(after)
    turned_on = set(enabled(after, features)) - set(enabled(before, features))
    changes = [
        Change(key, apply_class(key), left.get(key), right.get(key), _brings(key, turned_on, features))
        for key in sorted({*left, *right})
        if left.get(key) != right.get(key)
    ]
    return Difference(tuple(sorted(changes, key=lambda change: (APPLY_ORDER.index(change.apply), change.key))))


def _usable(path: Path) -> Manifest:
    manifest = load(path)
    if manifest.effective is None:
        raise AgentboxError(
            f"cannot compare {path}: {manifest.findings[0].message}",
            f"Run `agentbox config validate {path}`.",
            exit_code=ExitCode.USAGE,
        )
    return manifest


def _brings(key: str, names: set[str], features: dict[str, Feature]) -> tuple[str, ...]:
    """The features that this key turns on, with what they bring."""
    gated = [features[name] for name in sorted(names) if (gate := features[name].gate) and gate.key == key]
    return tuple(f"feature {f.name}: {_packages(f)} packages, {len(f.probes)} probes" for f in gated)


def _packages(feature: Feature) -> int:
    return len(feature.debian) + len(feature.npm) + len(feature.pypi)


def print_json(difference: Difference) -> None:
    """One document."""
    changes = [asdict(change) for change in difference.changes]
    print(json.dumps({"changes": changes, "needed": difference.needed}, indent=2, ensure_ascii=False))


def print_text(difference: Difference) -> None:
    """A line a key, then what is needed."""
    if difference.needed is None:
        print("equal")
        return
    width = max(len(change.key) for change in difference.changes)
    for change in difference.changes:
        brings = "".join(f"   + {text}" for text in change.brings)
        print(f"{change.apply:<9} {change.key:<{width}}  {_side(change.old)} -> {_side(change.new)}{brings}")
    print(f"needed: {difference.needed}. Run `{_COMMANDS[difference.needed]}`.")


def _side(value: Any) -> str:
    return "absent" if value is None else spell(value)
