"""`config show --resolved`: of every effective value where it comes from and what it touches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from agentbox.core.errors import AgentboxError
from agentbox.host.cli.effects import generated
from agentbox.host.reference.manifest import when_text
from agentbox.manifest.alternatives import others, with_value
from agentbox.manifest.conditions import conditions_of
from agentbox.manifest.features.available import UNREAD
from agentbox.manifest.features.model import Feature
from agentbox.manifest.keys import apply_class, effective_values, generic
from agentbox.manifest.load import Manifest
from agentbox.manifest.origin import origin
from agentbox.manifest.rules.discovery import discover
from agentbox.manifest.types import Apply

_IN_THE_BOX = ("plan.json",)  # holds the digest of every value


@dataclass(frozen=True)
class Resolved:
    """One key. `unread` says why nothing reads it now; `files` are those that another value changes, as tried out."""

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
        touched = [*(["image"] if self.apply == "rebuild" else []), *self.files]
        touches = f"{self.apply}: {', '.join(touched)}" if touched else self.apply
        rules = f"rules {', '.join(self.rules)}" if self.rules else ""
        unread = f"not read: {self.unread}" if self.unread else ""
        return "; ".join(part for part in (self.source, touches, unread, rules) if part)


def resolved(manifest: Manifest, features: Mapping[str, Feature]) -> dict[str, Resolved]:
    """Every key of a manifest that fits the schema, in the order of the model."""
    values = effective_values(manifest)
    files = _Files(manifest, features)
    readers = _readers()
    return {
        path: Resolved(
            value=value,
            source=str(origin(manifest, path, values)),
            apply=apply_class(path),
            unread=_unread(path, values),
            rules=readers.get(generic(path), ()),
            files=files.changed_by(path, value),
        )
        for path, value in values.items()
    }


def _unread(path: str, values: Mapping[str, Any]) -> str:
    if generic(path) in UNREAD:
        return f"{UNREAD[generic(path)]} is not in this release"
    wanted = [item for item in conditions_of(path) if not item.holds(values[item.key])]
    if never := [item for item in wanted if not item.values]:
        return f"no choice of `{never[0].key}` does"
    return f"only while {when_text(wanted)}" if wanted else ""


def _readers() -> dict[str, tuple[str, ...]]:
    """Key -> the codes of the rules that name it; rules that walk all keys are left out."""
    found: dict[str, tuple[str, ...]] = {}
    for rule in discover().values():
        for key in rule.reads:
            found[key] = (*found.get(key, ()), rule.code)
    return found


class _Files:
    """Which generated files a key reaches, found by rendering them with another value. Keys of class live and boot reach
    none outside of the box: a test holds that for each of them."""

    def __init__(self, manifest: Manifest, features: Mapping[str, Feature]) -> None:
        self.manifest, self.features = manifest, features
        self.before = self._generated(manifest)

    def changed_by(self, path: str, value: Any) -> tuple[str, ...]:
        if self.before is None or apply_class(path) in ("live", "boot"):
            return ()
        for other in others(path, value):
            changed = replace(self.manifest, usable=with_value(self.manifest.usable, path, other))
            if (after := self._generated(changed)) is not None:
                return tuple(sorted(self._different(after)))
        return ()

    def _different(self, after: Mapping[str, str]) -> Iterator[str]:
        assert self.before is not None
        for name in {*self.before, *after} - set(_IN_THE_BOX):
            if self.before.get(name) != after.get(name):
                yield name

    def _generated(self, manifest: Manifest) -> Mapping[str, str] | None:
        try:
            return generated(manifest, self.features)
        except AgentboxError:  # a value that cannot be planned beside the others, such as a port that is taken
            return None
