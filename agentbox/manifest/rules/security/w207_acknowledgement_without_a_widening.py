"""W207: an acknowledgement although nothing is widened."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.rules.security import _widening

CODE, SINCE = "W207", "0.1"
TITLE = "acknowledgement without a widening"
REASON = "The acknowledgement is for what is widened now. It would silently cover a later widening."
READS = ("security.audit_acknowledged", *_widening.READS)
BAD = """
[security]
audit_acknowledged = true
"""
GOOD = """
[security]
audit_acknowledged = false
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    if context["security.audit_acknowledged"] and not any(_widening.find_widenings(context)):
        yield context.finding(
            "security.audit_acknowledged",
            message="a widening is acknowledged and nothing widens",
            remedy="Set security.audit_acknowledged = false.",
        )
