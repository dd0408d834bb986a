"""The features that a manifest enables, with their gates."""

from collections.abc import Iterator

from agentbox.manifest.features.model import Feature
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.toml_text import format_toml


def gated_features(context: RuleContext) -> Iterator[tuple[Feature, str]]:
    """Each enabled feature with its gate; features without one are always on and omitted."""
    for name in context.enabled_features:
        feature = context.features[name]
        if feature.gate is not None:
            yield feature, feature.gate.key


def turn_off(context: RuleContext, gate: str) -> str:
    """The assignment that disables a gate."""
    if gate == "mcp.servers":
        return "enabled = false in each of [mcp.servers]"
    return f"{gate} = {format_toml(False if isinstance(context[gate], bool) else 'none')}"


def turn_on(feature: Feature) -> str:
    """The assignment that enables a feature."""
    return f"{feature.gate.key} = {format_toml(feature.gate.values[0])}" if feature.gate else ""


def has_exception_block(context: RuleContext, key: str) -> bool:
    """Whether the exception has a block."""
    return context.has("security.exceptions", key)
