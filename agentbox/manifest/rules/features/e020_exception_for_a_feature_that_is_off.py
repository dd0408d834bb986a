"""E020: an exception whose gate is off."""

from collections.abc import Iterator

from agentbox.manifest.features.security_exceptions import open_gates
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, RuleContext

CODE, SINCE = "E020", "0.1"
TITLE = "exception for a feature that is off"
REASON = (
    "The block has no effect now, and would silently widen the box when the feature is enabled."
)
READS = ("security.exceptions", *GATES)
BAD = "[security.exceptions.desktop]"
GOOD = ""
EACH = "security.exceptions"


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per block."""
    if context.entry in open_gates(context.features, context.enabled_features):
        return
    owners = [
        feature
        for feature in context.features.values()
        if feature.exception and feature.exception.key == context.entry
    ]
    gates = " or ".join(feature.gate.key for feature in owners if feature.gate)
    yield context.finding(
        "security.exceptions.*",
        message=f"the exception {context.entry} is written and "
        f"{f'{gates} is off' if gates else 'no feature of this release needs it'}",
        remedy=f"Remove [security.exceptions.{context.entry}]"
        + (f", or turn {gates} on." if gates else "."),
    )
