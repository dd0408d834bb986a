"""W021: a feature that works better with its exception."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, RuleContext
from agentbox.manifest.rules.features._features import gated_features, has_exception_block

CODE, SINCE = "W021", "0.1"
TITLE = "feature without its advised exception"
REASON = """Without the exception the feature may fail, or lose its state when the box is recreated.
The exception adds exactly what it needs."""
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
    """One finding per feature."""
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
