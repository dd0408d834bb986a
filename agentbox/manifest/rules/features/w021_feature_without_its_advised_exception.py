"""W021: a feature that runs better with its exception."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, View
from agentbox.manifest.rules.features._features import block, features_on

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


def check(view: View) -> Iterator[Finding]:
    """One finding a feature."""
    for feature, gate in features_on(view):
        need = feature.exception
        if need is not None and need.need == "advised" and not block(view, need.key):
            yield view.finding(
                gate,
                message=f"{feature.name} runs on the bare baseline: it may fail, or lose its state",
                remedy=f"Add the empty block [security.exceptions.{need.key}].",
            )
