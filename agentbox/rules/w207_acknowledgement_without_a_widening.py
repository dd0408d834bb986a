"""W207: acknowledged, and nothing is widened."""

from collections.abc import Iterator

from agentbox.features import effective_delta, widenings
from agentbox.features.exceptions import active
from agentbox.manifest import Finding
from agentbox.rules.view import View

CODE, SINCE = "W207", "0.1"
TITLE = "acknowledgement without a widening"
WHY = "The acknowledgement is for what is widened now. Left standing, it would silently cover the next widening too."
READS = ("security.audit_acknowledged", "security.exceptions")
BAD = """
[security]
audit_acknowledged = true
"""
GOOD = """
[security]
audit_acknowledged = false
"""


def check(view: View) -> Iterator[Finding]:
    """At most one finding."""
    if not view["security.audit_acknowledged"]:
        return
    written = view.names("security.exceptions")
    keys = (key for key in active(view.model, view.features, view.on) if key in written)
    if not any(widenings(effective_delta(view.model, key)) for key in keys):
        yield view.finding(
            "security.audit_acknowledged",
            message="a widening is acknowledged and nothing widens",
            remedy="Set security.audit_acknowledged = false.",
        )
