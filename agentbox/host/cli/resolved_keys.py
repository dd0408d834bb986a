"""`config show --resolved`: source and effects of every effective value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from agentbox.core.errors import AgentboxError
from agentbox.host.cli.key_text import when_text
from agentbox.host.cli.manifest_effects import generated_digests
from agentbox.manifest.alternatives import alternative_values, with_value
from agentbox.manifest.declarations.conditions import conditions_of
from agentbox.manifest.declarations.key import Apply
from agentbox.manifest.features.model import Feature
from agentbox.manifest.features.supported_choices import UNREAD
from agentbox.manifest.keys import apply_class, effective_values, generic_path
from agentbox.manifest.load import Manifest
from agentbox.manifest.origin import origin
from agentbox.manifest.rules.discovery import discover

_EXCLUDED_FILES = ("plan.json",)  # contains the digest of every value


@dataclass(frozen=True)
class ResolvedKey:
    """One key. `unread`: why nothing reads it now; `files`: those that another value changes, found
    by rendering."""

    value: Any
    source: str
    apply: Apply
    unread: str
    rules: tuple[str, ...]
    files: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data with the same names."""
        return asdict(self)

    def __str__(self) -> str:
        """`line 12; rebuild: image, docker-compose.yml; rules E013, E101`."""
        affected = [*(["image"] if self.apply == "rebuild" else []), *self.files]
        effect = f"{self.apply}: {', '.join(affected)}" if affected else self.apply
        rules = f"rules {', '.join(self.rules)}" if self.rules else ""
        unread = f"not read: {self.unread}" if self.unread else ""
        return "; ".join(text for text in (self.source, effect, unread, rules) if text)


def resolve_keys(manifest: Manifest, features: Mapping[str, Feature]) -> dict[str, ResolvedKey]:
    """Resolves every key of a valid manifest, in the order of the model."""
    values = effective_values(manifest)
    file_effects = _FileEffects(manifest, features)
    rule_codes = _rule_codes()
    return {
        path: ResolvedKey(
            value=value,
            source=str(origin(manifest, path, values)),
            apply=apply_class(path),
            unread=_unread_reason(path, values),
            rules=rule_codes.get(generic_path(path), ()),
            files=file_effects.files_changed_by(path, value),
        )
        for path, value in values.items()
    }


def _unread_reason(path: str, values: Mapping[str, Any]) -> str:
    if generic_path(path) in UNREAD:
        return f"{UNREAD[generic_path(path)]} is not in this release"
    unmet = [item for item in conditions_of(path) if not item.holds(values[item.key])]
    if impossible := [item for item in unmet if not item.values]:
        return f"no choice of `{impossible[0].key}` does"
    return f"only while {when_text(unmet)}" if unmet else ""


def _rule_codes() -> dict[str, tuple[str, ...]]:
    """Key -> codes of the rules that name it, without rules that read all keys."""
    codes: dict[str, tuple[str, ...]] = {}
    for rule in discover().values():
        for key in rule.reads:
            codes[key] = (*codes.get(key, ()), rule.code)
    return codes


class _FileEffects:
    """Generated files that a key affects, found by rendering them with another value. Keys of class
    live and boot affect none outside the box, which a test checks."""

    def __init__(self, manifest: Manifest, features: Mapping[str, Feature]) -> None:
        self.manifest, self.features = manifest, features
        self.baseline = self._generated(manifest)

    def files_changed_by(self, path: str, value: Any) -> tuple[str, ...]:
        if self.baseline is None or apply_class(path) in ("live", "boot"):
            return ()
        for other in alternative_values(path, value):
            changed = replace(self.manifest, usable=with_value(self.manifest.usable, path, other))
            if (after := self._generated(changed)) is not None:
                return tuple(sorted(self._differing_names(after)))
        return ()

    def _differing_names(self, after: Mapping[str, str]) -> Iterator[str]:
        assert self.baseline is not None
        for name in {*self.baseline, *after} - set(_EXCLUDED_FILES):
            if self.baseline.get(name) != after.get(name):
                yield name

    def _generated(self, manifest: Manifest) -> Mapping[str, str] | None:
        try:
            return generated_digests(manifest, self.features)
        except AgentboxError:  # the value conflicts with others, such as a port in use
            return None
