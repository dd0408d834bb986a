"""E008: a feature that is not available for a target system."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, RuleContext
from agentbox.manifest.rules.features._features import gated_features, turn_off

CODE, SINCE = "E008", "0.1"
TITLE = "feature not built for a target system"
REASON = """Some programs exist for one architecture only. The image for another one could not be
built, or would lack them."""
READS = ("image.systems", *GATES)
BAD = """
[image]
systems = ["aarch64-linux"]
[gpu]
backend = "local-cuda"
"""
GOOD = """
[image]
systems = ["x86_64-linux"]
[gpu]
backend = "local-cuda"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per feature and system; none without a target system."""
    for feature, gate in gated_features(context):
        for system in context.systems:
            if feature.systems and system not in feature.systems:
                yield context.finding(
                    gate,
                    message=f"{feature.name} is not built for {system}",
                    remedy=f"Narrow image.systems to {' and '.join(feature.systems)}, or set "
                    f"{turn_off(context, gate)}.",
                    related=("image.systems",),
                )
