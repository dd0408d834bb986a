"""The features that a manifest turns on, with the keys that did it."""

from collections.abc import Iterator

from agentbox.manifest.features.model import Feature
from agentbox.manifest.rules.context import View
from agentbox.manifest.toml_text import spell


def features_on(view: View) -> Iterator[tuple[Feature, str]]:
    """Each feature that is on, with its gate; those without one are always on and left out."""
    for name in view.on:
        feature = view.features[name]
        if feature.gate is not None:
            yield feature, feature.gate.key


def turn_off(view: View, gate: str) -> str:
    """What to write so that a gate is off."""
    return f"{gate} = {spell(False if isinstance(view[gate], bool) else 'none')}"


def turn_on(feature: Feature) -> str:
    """What to write so that a feature is on."""
    return f"{feature.gate.key} = {spell(feature.gate.values[0])}" if feature.gate else ""


def block(view: View, key: str) -> bool:
    """Whether the exception's block is written."""
    return view.has("security.exceptions", key)
