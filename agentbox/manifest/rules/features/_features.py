"""The features that a manifest turns on, with the keys that did it."""

from collections.abc import Iterator

from agentbox.manifest.features.model import Feature
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.toml_text import format_toml


def gated_features(context: RuleContext) -> Iterator[tuple[Feature, str]]:
    """Each feature that is on, with its gate; those without one are always on and left out."""
    for name in context.enabled_features:
        feature = context.features[name]
        if feature.gate is not None:
            yield feature, feature.gate.key


def turn_off(context: RuleContext, gate: str) -> str:
    """What to write so that a gate is off."""
    return f"{gate} = {format_toml(False if isinstance(context[gate], bool) else 'none')}"


def turn_on(feature: Feature) -> str:
    """What to write so that a feature is on."""
    return f"{feature.gate.key} = {format_toml(feature.gate.values[0])}" if feature.gate else ""


def has_exception_block(context: RuleContext, key: str) -> bool:
    """Whether the exception's block is written."""
    return context.has("security.exceptions", key)
