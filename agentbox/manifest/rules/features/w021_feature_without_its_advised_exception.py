"""W021: a feature that runs better with its exception."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, RuleContext
from agentbox.manifest.rules.features._features import gated_features, has_exception_block

CODE, SINCE = "W021", "0.1"
TITLE = "feature without its advised exception"
WHY = """On the bare baseline the feature may fail, or lose its state when the box is made anew. The exception adds what it
needs and no more."""
READS = (*GATES, "security.exceptions")
BAD = """
[desktop]
enabled = true
"""
GOOD = """
[desktop]
enabled = true
[security.exceptions.desktop]
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding a feature."""
    for feature, gate in gated_features(context):
        need = feature.exception
        if (
            need is not None
            and need.need == "advised"
            and not has_exception_block(context, need.key)
        ):
            yield context.finding(
                gate,
                message=f"{feature.name} runs on the bare baseline: it may fail, or lose its state",
                remedy=f"Add the empty block [security.exceptions.{need.key}].",
            )
