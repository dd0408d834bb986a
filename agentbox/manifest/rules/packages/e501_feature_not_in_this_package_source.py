"""E501: the package source does not have the feature."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, RuleContext
from agentbox.manifest.rules.features._features import gated_features, turn_off

CODE, SINCE = "E501", "0.1"
TITLE = "feature not in this package source"
REASON = (
    "The two package sources have different programs. A missing one cannot be put into the image."
)
READS = ("image.source", *GATES)
BAD = """
[gpu]
backend = "ollama-cuda"
"""
GOOD = """
[image]
source = "nixpkgs"
[gpu]
backend = "ollama-cuda"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per feature."""
    source = context["image.source"]
    for feature, gate in gated_features(context):
        if feature.sources and source not in feature.sources:
            yield context.finding(
                gate,
                message=f"{feature.name} is not in the package source {source}; "
                f"{' and '.join(feature.sources)} has it",
                remedy=f'Set image.source = "{feature.sources[0]}", or {turn_off(context, gate)}.',
                related=("image.source",),
            )
