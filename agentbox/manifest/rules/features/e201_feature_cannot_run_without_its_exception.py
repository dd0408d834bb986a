"""E201: a feature that cannot work without its exception."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, RuleContext
from agentbox.manifest.rules.features._features import gated_features, has_exception_block

CODE, SINCE = "E201", "0.1"
TITLE = "feature cannot run without its exception"
REASON = "The device that the feature needs is not in the box until its exception adds it."
READS = (*GATES, "security.exceptions")
BAD = """
[gpu]
backend = "local-cuda"
"""
GOOD = """
[gpu]
backend = "local-cuda"
[security]
audit_acknowledged = true
[security.exceptions.gpu-cuda]
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per feature."""
    for feature, gate in gated_features(context):
        need = feature.exception
        if (
            need is not None
            and need.need == "required"
            and not has_exception_block(context, need.key)
        ):
            yield context.finding(
                gate,
                message=f"{feature.name} cannot run without the exception {need.key}: its device "
                "would be missing",
                remedy=f"Add the block [security.exceptions.{need.key}], and "
                "security.audit_acknowledged = true once read.",
            )
